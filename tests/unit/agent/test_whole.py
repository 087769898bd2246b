"""Answers that are not streamed."""

import json
from typing import Any
from unittest.mock import Mock

import pytest
from tests.unit.agent.rescue.streams import Bench, asking, judge_of

from gatemesh_agent.requests import Asked, Route
from gatemesh_agent.strippers import PLAIN
from gatemesh_agent.whole import HIDDEN_TOKENS, hidden_tokens, is_torn, judged_whole
from gatemesh_common.messages import Reason

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
    assert judged_whole(body, judge, reply, PLAIN if added else None, asking()) == got  # type: ignore[arg-type]
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
        judged_whole(body, judge, reply, None, story.case.request.asked)
    assert is_torn(bench.attempt(story), reply, judge) is torn


def told(text: str, tokens: object, **more: Any) -> dict[str, Any]:
    """Return a whole answer that counts so many tokens."""
    message = {"role": "assistant", "content": text, **more}
    choice = {"index": 0, "message": message, "finish_reason": "length"}
    return {"choices": [choice], "usage": {"completion_tokens": tokens}}


@pytest.mark.parametrize(
    ("text", "tokens", "hides"),
    [
        ("The sea", 7 + HIDDEN_TOKENS, False),
        ("The sea", 8 + HIDDEN_TOKENS, True),
        ("海", 3 + HIDDEN_TOKENS, False),
        ("", 300, True),
        ("", 1, False),
        ("The sea", None, False),
        ("The sea", "300", False),
    ],
)
def test_a_token_that_shows_is_a_byte_at_least(text: str, tokens: object, *, hides: bool) -> None:
    """What an engine counts beyond that was never to be seen: NaN logits show so."""
    found = hidden_tokens(asking(), told(text, tokens))
    assert (found is not None) is hides
    if found is not None:
        assert (found.reason, found.hard) == (Reason.TOKENS_WITHOUT_TEXT, False)


@pytest.mark.parametrize(
    "asked",
    [
        asking(tools=[{"type": "function"}]),
        asking(stop=["."]),
        asking(include_reasoning=False),
        asking(ignore_eos=True),
        asking(Route.MESSAGES),
    ],
)
def test_where_engines_keep_back_what_they_wrote_nothing_is_counted(asked: Asked) -> None:
    """Nor where there is output beside the text, or more than one of them."""
    assert hidden_tokens(asked, told("The sea", 300)) is None
    assert hidden_tokens(asking(), told("The sea", 300, reasoning_content="Hm")) is None
    twice = told("The sea", 300)
    twice["choices"] *= 2
    assert hidden_tokens(asking(), twice) is None


def test_hidden_tokens_fail_the_first_gate() -> None:
    """Once; what else it would have found is not told besides."""
    bench = Bench()
    story = bench.story()
    body = json.dumps(told("Well", 300)).encode()
    with judge_of(bench, story) as judge:
        reply: Any = Mock(is_plain_json=True)
        assert judged_whole(body, judge, reply, None, story.case.request.asked) == body
    assert [each.reason for each in judge.failures] == [Reason.TOKENS_WITHOUT_TEXT]
