"""A whole answer with more tokens than usual is spelled anew, and compared."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.agent.rescue.streams import Bench, FakeUpstream, Script, asking
from tests.unit.agent.test_whole import told

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.rescue import counting
from gatemesh_agent.rescue.asking import Asking
from gatemesh_agent.rescue.counting import LEAST_TOKENS, Counting, is_doubtful
from gatemesh_agent.wishes import NOTHING
from gatemesh_common.messages import Reason

TEXT = "The sea is wide and deep. " * 20


def spelled(count: int) -> Script:
    """Return an engine's answer to how it spells a text."""
    page = {"count": count, "max_model_len": 9_999, "tokens": list(range(count))}
    return Script(json.dumps(page).encode())


async def found(
    tokens: int, upstream: FakeUpstream, text: str = TEXT, *, figures: bool = False
) -> Judgement | None:
    """Return what is found in an answer that counts so many tokens."""
    bench = Bench(upstream)
    attempt = bench.attempt(bench.story(asking(stream=False)))
    reply: Any = Script(b"", status=200)
    reply.is_plain_json = True
    own: Any = upstream
    return await Counting(Asking(own)).hidden(
        attempt if figures else replace(attempt, wish=NOTHING),
        reply,
        json.dumps(told(text, tokens)).encode(),
    )


@pytest.mark.parametrize(
    ("tokens", "text", "doubtful"),
    [
        (LEAST_TOKENS, "", True),
        (LEAST_TOKENS - 1, "", False),
        (100, "x" * 320, False),
        (100, "x" * 319, True),
        (100, "\u6d77" * 107, False),
    ],
)
def test_only_what_is_unusual_is_counted(tokens: int, text: str, *, doubtful: bool) -> None:
    """Prose has more bytes to a token, in any script."""
    assert is_doubtful(tokens, text) is doubtful


@pytest.mark.parametrize(("tokens", "hides"), [(166, False), (167, True)])
async def test_more_tokens_than_the_text_is_spelled_in_are_hidden(
    tokens: int, *, hides: bool
) -> None:
    """A quarter more and a few are allowed."""
    failure = await found(tokens, FakeUpstream(tokenize=spelled(120)), TEXT[:500])
    assert (failure is not None) is hides
    if failure is not None:
        assert (failure.reason, failure.hard) == (Reason.TOKENS_WITHOUT_TEXT, False)


async def test_where_figures_tell_nobody_is_asked() -> None:
    """Nor for an answer as long as its tokens, or one that cannot be read."""
    upstream = FakeUpstream(tokenize=spelled(1))
    assert await found(500, upstream, figures=True) is None
    assert await found(100, upstream) is None
    assert upstream.asked == []


async def test_an_engine_that_does_not_count_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer is here: its client gets it."""
    assert await found(500, FakeUpstream(tokenize=Script(b"{}", status=404))) is None
    monkeypatch.setattr(counting, "WAIT_S", 0.01)

    class Hung(Asking):
        """Never answers."""

        async def count(self, *_: Any) -> int | None:
            """Wait."""
            await asyncio.Event().wait()
            return None

    bench, reply = Bench(), Script(b"")
    own: Any = reply
    own.is_plain_json = True
    attempt = replace(bench.attempt(bench.story(asking(stream=False))), wish=NOTHING)
    body = json.dumps(told(TEXT, 500)).encode()
    assert await Counting(Hung(bench.upstream)).hidden(attempt, own, body) is None  # type: ignore[arg-type]
