"""The XML-RPC client; its conversations are tested with a real supervisord."""

from pathlib import Path

import pytest

from gatemesh_executor.backends.base import BackendUnavailableError
from gatemesh_executor.backends.xmlrpc import XmlRpcClient, login_header


def test_the_login_is_sent_only_when_there_is_one() -> None:
    """A supervisord without a password wants no header."""
    assert login_header("", "ignored") == {}
    assert login_header("mesh", "secret") == {"Authorization": "Basic bWVzaDpzZWNyZXQ="}


async def test_a_missing_socket_is_an_absent_platform(tmp_path: Path) -> None:
    """Supervisord may come back."""
    async with XmlRpcClient(f"unix://{tmp_path}/none.sock", "", "", 1.0) as client:
        with pytest.raises(BackendUnavailableError, match=r"supervisor\.getPID"):
            await client.call("supervisor.getPID")
