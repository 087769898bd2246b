"""Guarded requests, as far as no network is needed."""

from typing import Any
from unittest.mock import Mock

import pytest

from gatemesh_agent.guarded import judged_whole
from gatemesh_agent.strippers import PLAIN

WITH = b'{"choices":[{"logprobs":{"content":[]},"message":{}}]}'
WITHOUT = b'{"choices":[{"logprobs":null,"message":{}}]}'


class Witness:
    """Stands in for a judge."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.why: list[str] = []

    def take_event(self, fields: dict[str, Any], raw: bytes | None = None) -> None:
        """Keep it."""
        self.seen.append(fields)

    def give_up(self, why: str) -> None:
        """Keep it."""
        self.why.append(why)


@pytest.mark.parametrize(
    ("body", "plain", "added", "got", "why"),
    [
        pytest.param(WITH, True, True, WITHOUT, [], id="added"),
        pytest.param(WITH, True, False, WITH, [], id="the-clients-own"),
        pytest.param(b"\xff", True, True, b"\xff", ["unreadable"], id="unreadable"),
        pytest.param(WITH, False, True, WITH, ["unreadable"], id="compressed"),
    ],
)
def test_what_the_client_gets_of_a_whole_answer(
    body: bytes,
    plain: bool,  # noqa: FBT001
    added: bool,  # noqa: FBT001
    got: bytes,
    why: list[str],
) -> None:
    """Only what was added is taken out; only what was read counts as judged."""
    judge, reply = Witness(), Mock(is_plain_json=plain)
    assert judged_whole(body, judge, reply, PLAIN if added else None) == got  # type: ignore[arg-type]
    assert judge.why == why
    assert len(judge.seen) == (not why)
