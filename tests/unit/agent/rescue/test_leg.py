"""One instance's part: clean bytes pass unchanged, bad ones never, however the stream is cut."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.agent.rescue.streams import (
    Bench,
    asking,
    bare,
    event,
    judge_of,
    opening,
    sse,
    text_of,
    whole,
    words,
)

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.rescue.hold import Hold, HoldBounds, Mark
from gatemesh_agent.rescue.leg import SILENT_EVENTS, Leg
from gatemesh_agent.rescue.story import Cause, Fault, Story
from gatemesh_agent.sse import DONE
from gatemesh_agent.stream import GuardedStream
from gatemesh_common.messages import Reason

CLEAN = b"".join(whole("The", " sea", " is", " wide", " and", " deep", "."))
NAN = words("The", " sea", " is") + event("", logprob=None, number=0)


class Acting:
    """Decides as a rescuer would that has somebody else."""

    def __init__(self, *, passes: bool = False) -> None:
        self.passes = passes
        self.seen: list[Judgement] = []

    def __call__(self, failure: Judgement) -> Fault | None:
        """Keep the failure; end the part unless it passes."""
        self.seen.append(failure)
        return None if self.passes else Fault(Cause.GATE, "a", failure)


def leg_of(
    story: Story | None = None, *, passes: bool = False, bounds: HoldBounds | None = None
) -> tuple[Leg, Any]:
    """Return a part of instance `a` under the real gates."""
    bench = Bench()
    story = story or bench.story()
    judge = judge_of(bench, story)
    guarded = GuardedStream(judge, added=True, drops_bare=True, limit_bytes=10**6)
    leg = Leg(
        story,
        judge,
        guarded,
        Hold(bounds or HoldBounds()),
        instance_id="a",
        acts=lambda _failure: True,
        decide=Acting(passes=passes),
    )
    judge.listener = leg
    return leg, judge


def fed(leg: Leg, data: bytes, places: list[int]) -> bytes:
    """Return what a client gets of a stream that is cut at these places."""
    cuts = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    out = b""
    for begin, end in pairwise(cuts):
        if leg.fault is None:
            out += leg.feed(data[begin:end], 0.0)
    return out


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=20))
def test_clean_bytes_pass_unchanged(places: list[int]) -> None:
    """Those that the client would have got without an agent."""
    leg, judge = leg_of()
    with judge:
        out = fed(leg, CLEAN, places)
        out += leg.end(0.0)
    assert out == bare(CLEAN)
    assert (leg.fault, leg.leaked) == (None, 0)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["nan", "signs", "mark", "replacement"]),
    st.integers(0, 5),
    st.lists(st.integers(0, 10_000), max_size=20),
)
def test_any_cut_gives_the_same_good_part(kind: str, onset: int, places: list[int]) -> None:
    """And never a bad token."""
    bad = {
        "nan": event("", logprob=None, number=0) * 3,
        "signs": event("!!!!", number=5) * 12,
        "mark": event("<|im_end|>", number=2)
        + words(*["", "and", "so", "it", "goes", "on", "and", "on"]),
        "replacement": event("\ufffd", number=3) * 8,
    }[kind]
    said = [" one", " two", " three", " four", " five"][:onset]
    leg, judge = leg_of()
    with judge:
        out = fed(leg, opening() + words(*said) + bad * 3, places)
    assert leg.fault is not None
    assert text_of(out) == "".join(said)
    assert out == bare(opening() + words(*said))
    assert leg.kept().text == "".join(said)
    assert leg.kept().ids == tuple(range(100, 100 + onset))


def test_proof_is_cut_at_the_token_before() -> None:
    """NaN shows with its first token."""
    leg, judge = leg_of()
    with judge:
        assert text_of(leg.feed(NAN, 0.0)) == "The sea is"
    assert leg.fault is not None
    assert leg.fault.failure is not None
    assert leg.fault.failure.reason is Reason.NAN_LOGITS
    assert leg.cut == Mark(10, 3, 3)


def test_what_had_passed_before_a_fault_is_counted() -> None:
    """The rest goes on from where it begins; what its client has is not taken back."""
    leg, judge = leg_of(bounds=HoldBounds(tokens=2))
    with judge:
        out = leg.feed(words("The", " sea") + event("!!!!", number=5) * 40, 0.0)
    assert text_of(out).startswith("The sea!!!!")
    assert leg.leaked > 0
    assert leg.kept().text == "The sea"
    assert leg.kept().leaked == leg.leaked


def test_a_failure_that_is_let_pass_holds_nothing_any_more() -> None:
    """Only proof ends it then."""
    leg, judge = leg_of(passes=True)
    with judge:
        out = leg.feed(words("The", " sea") + event("<|im_end|>", number=2) * 9, 0.0)
        assert leg.free
        assert b"im_end" in out
        leg._decide = Acting()
        leg.feed(event("", logprob=None), 0.0)
    assert leg.fault is not None


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ({"message": "EngineCore encountered an issue.", "code": 500}, Cause.DIED),
        ({"message": "odd", "code": 500}, Cause.ERROR),
        ({"message": "slow down", "code": 429}, Cause.ERROR),
        ({"message": "bad request", "code": 400}, None),
    ],
)
def test_errors_of_the_engine_end_a_part(error: dict[str, Any], cause: Cause | None) -> None:
    """Those of the client are the client's to see."""
    leg, judge = leg_of()
    with judge:
        out = leg.feed(words("The", " sea") + sse({"error": error}), 0.0)
    assert (leg.fault.cause if leg.fault else None) == cause
    assert (b"error" in out) == (cause is None)


def test_an_error_that_is_the_clients_ends_a_stream() -> None:
    """Nobody goes on behind it."""
    leg, judge = leg_of()
    wrong = sse({"error": {"message": "too long", "code": "context_length_exceeded"}})
    with judge:
        out = leg.feed(words("The") + wrong + DONE, 0.0) + leg.end(0.0)
    assert leg.fault is None
    assert out.endswith(wrong + DONE)


def test_a_stream_that_ends_without_a_word_broke() -> None:
    """What came is kept."""
    leg, judge = leg_of()
    with judge:
        leg.feed(words("The", " sea") + b'data: {"id":"chat', 0.0)
        assert leg.end(0.0) == b""
    assert leg.fault == Fault(Cause.BROKEN, "a")
    assert leg.kept().text == "The sea"


def test_tokens_without_text_end_a_part() -> None:
    """NaN is hidden where no figures are told."""
    leg, judge = leg_of()
    with judge:
        leg.feed(words("The", told=False) + event("", told=False) * (SILENT_EVENTS - 1), 0.0)
        assert leg.fault is None
        leg.feed(event("", told=False), 0.0)
    assert leg.fault is not None
    assert leg.fault.failure is not None
    assert leg.fault.failure.reason is Reason.TOKENS_WITHOUT_TEXT
    assert leg.kept().ids is None


def test_a_character_in_parts_is_never_cut() -> None:
    """The place is behind the last text."""
    leg, judge = leg_of()
    with judge:
        leg.feed(words("The") + event("", number=50) + event("", number=51), 0.0)
        leg.leave(Fault(Cause.BROKEN, "a"), 0.0)
    assert leg.kept().ids == (100,)


def test_calls_and_reasoning_are_noted_once_they_are_shown() -> None:
    """They decide whether somebody else may go on."""
    bench = Bench()
    story = bench.story()
    leg, judge = leg_of(story)
    with judge:
        leg.feed(event("", reasoning="Hm."), 0.0)
        assert story.shown.reasoning
        leg.feed(event("The", number=8), 0.0)
        assert (story.shown.reasoning, story.shown.reasoned) == (False, True)
        call = {"index": 0, "function": {"name": "f", "arguments": "{"}}
        leg.feed(event("", number=9, tool_calls=[call]), 0.0)
        assert story.shown.calls


def test_what_is_found_at_the_end_of_a_shown_answer_comes_too_late() -> None:
    """The client has it; the verdict goes out all the same."""
    leg, judge = leg_of()
    with judge:
        cut = words(
            *[
                "It",
                "is",
                "a",
                "truth",
                "that",
                "all",
                "of",
                "us",
                "have",
                "to",
                "see",
                "and",
                "that",
            ]
        )
        leg.feed(cut + event(" the", finish="stop", number=5), 0.0)
    assert leg.fault is None


TORN = (
    "The sea is wide and deep. The land is small and dry. Nobody who has been out there on a day "
    "in autumn would say that the"
)


def said(text: str) -> bytes:
    """Return a text as tokens of a stream."""
    return words(*(f"{' ' if at else ''}{word}" for at, word in enumerate(text.split())))


@pytest.mark.parametrize(
    ("text", "reason", "fault"),
    [
        (TORN, "stop", Reason.TRUNCATED),
        (TORN + " sea is calm.", "stop", None),
        (TORN, "length", None),
        ("", "stop", Reason.EMPTY),
    ],
)
def test_an_end_that_no_one_would_choose_is_in_time(
    text: str, reason: str, fault: Reason | None
) -> None:
    """The event that ends the answer is judged before it goes: all that was said before stands."""
    leg, judge = leg_of()
    with judge:
        out = leg.feed(opening() + said(text) + event("", finish=reason, number=9), 0.0)
    assert (leg.fault is not None) is (fault is not None)
    if leg.fault is not None:
        assert leg.fault.failure is not None
        assert leg.fault.failure.reason is fault
        assert (leg.kept().text, leg.leaked) == (text, 0)
        assert text_of(out) == text
        assert b'finish_reason":"stop' not in out


def test_a_stream_without_an_end_is_left_whatever_was_asked() -> None:
    """Also where nobody may go on with it: its client is told."""
    leg, judge = leg_of(Bench().story(asking(frequency_penalty=1)))
    with judge:
        leg.feed(opening() + said("The sea is"), 0.0)
        assert leg.end(0.0) == b""
    assert leg.fault is not None
    assert leg.fault.cause is Cause.BROKEN
