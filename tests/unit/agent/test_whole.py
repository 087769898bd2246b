"""Answers that are not streamed."""

from typing import Any
from unittest.mock import Mock

import pytest
from tests.unit.agent.rescue.streams import Bench, asking, judge_of

from gatemesh_agent.requests import Route
from gatemesh_agent.strippers import PLAIN
from gatemesh_agent.whole import is_torn, judged_whole

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


@pytest.mark.parametrize(
    ("body", "plain", "route", "torn"),
    [
        pytest.param(
            b'{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}',
            True,
            Route.CHAT,
            False,
            id="whole",
        ),
        pytest.param(
            b'{"choices":[{"message":{"content":"Hi"},"finish_reason":null}]}',
            True,
            Route.CHAT,
            True,
            id="no-end",
        ),
        pytest.param(b'{"choices":[{"message":{"con', True, Route.COMPLETIONS, True, id="cut"),
        pytest.param(b"{}", True, Route.CHAT, True, id="nothing"),
        pytest.param(b"{}", True, Route.RESPONSES, False, id="tells-no-end"),
        pytest.param(b"\x1f\x8b", False, Route.CHAT, False, id="compressed"),
    ],
)
def test_an_answer_without_an_end_is_torn(
    body: bytes,
    plain: bool,  # noqa: FBT001
    route: Route,
    torn: bool,  # noqa: FBT001
) -> None:
    """What nobody can read here may be fine for its client."""
    bench = Bench()
    story = bench.story(asking(route))
    reply: Any = Mock(is_plain_json=plain)
    with judge_of(bench, story) as judge:
        judged_whole(body, judge, reply, None)
    assert is_torn(bench.attempt(story), reply, judge) is torn
