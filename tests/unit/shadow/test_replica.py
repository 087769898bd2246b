"""How an instance's answers are read."""

import pytest

from gatemesh_common.errors import GatemeshError
from gatemesh_shadow.errors import (
    ReplicaBrokenError,
    ReplicaRefusedError,
    ReplicaUnavailableError,
)
from gatemesh_shadow.replica import ReplicaClient, read


def test_a_good_answer() -> None:
    """Its JSON object."""
    assert read(200, b'{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    ("status", "raw", "error"),
    [
        (500, b"", ReplicaUnavailableError),
        (503, b"", ReplicaUnavailableError),
        (429, b"", ReplicaUnavailableError),
        (400, b'{"error": {}}', ReplicaRefusedError),
        (404, b"", ReplicaRefusedError),
        (400, b"Out of range float values are not JSON compliant", ReplicaBrokenError),
        (200, b"<html>", ReplicaBrokenError),
        (200, b"[]", ReplicaBrokenError),
        (200, b'{"error": {"code": 500}}', ReplicaBrokenError),
    ],
)
def test_bad_answers(status: int, raw: bytes, error: type[GatemeshError]) -> None:
    """Each in the class that tells what to do."""
    with pytest.raises(error):
        read(status, raw)


async def test_it_is_used_in_its_context() -> None:
    """A programming error, said as one."""
    with pytest.raises(RuntimeError):
        await ReplicaClient(1.0).post("http://x", "/", {})
