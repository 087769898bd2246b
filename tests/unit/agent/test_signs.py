"""Signs need several answers, several prompts, and peers that do better."""

from collections.abc import Iterable
from typing import Any

import pytest

from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.reading import CallParts, Reading
from gatemesh_agent.reporting import Life
from gatemesh_agent.signs import WINDOW_S, Note, Signs, note_of
from gatemesh_agent.transcript import Transcript
from gatemesh_common.messages import Reason

SICK = Life("sick", 0, None, numbered=True)
PEER = Life("peer", 0, None, numbered=True)


def notes(count: int, **more: Any) -> Iterable[Note]:
    """Return notes of so many prompts."""
    return (Note(0.0, f"p{number}", **more) for number in range(count))


def reasons(signs: Signs, life: Life, given: Iterable[Note]) -> list[Reason]:
    """Feed notes; return every sign they complete, in order."""
    return [found.reason for note in given for found in signs.answered(life, note)]


def transcript(
    text: str, *logprobs: float, reason: str = "stop", other: bool = False
) -> Transcript:
    """Return an answer with these figures."""
    first = Transcript()
    steps = tuple(TokenStep("", each) for each in logprobs)
    first.take(Reading(text, steps, other, ()))
    first.end(reason, CallParts())
    return first


@pytest.mark.parametrize(
    ("first", "wordless", "equal", "endless"),
    [
        (transcript("A word.", -0.1, -2.0, -0.3, -0.7), False, False, False),
        (transcript("", *[-1.0 - n for n in range(9)]), True, False, False),
        (transcript("", *[-1.0 - n for n in range(9)], other=True), False, False, False),
        (transcript("", -1.0, -2.0), False, False, False),
        (transcript("x", *[-10.8] * 5), False, True, False),
        (transcript("x", *[-0.001] * 5), False, False, False),
        (transcript("x", *[-1.0 - n for n in range(40)], reason="length"), False, False, True),
        (transcript("x", -1.0, -2.0, reason="length"), False, False, False),
    ],
    ids=[
        *("plain", "wordless", "reasoning", "stopped-at-once"),
        *("equal", "certain", "endless", "short"),
    ],
)
def test_what_is_noted(
    first: Transcript,
    wordless: bool,  # noqa: FBT001
    equal: bool,  # noqa: FBT001
    endless: bool,  # noqa: FBT001
) -> None:
    """Of one answer."""
    note = note_of(first, "p", 0.0)
    assert (note.wordless, note.equal, note.endless) == (wordless, equal, endless)


@pytest.mark.parametrize(
    ("shown", "reason"),
    [({"wordless": True}, Reason.TOKENS_WITHOUT_TEXT), ({"equal": True}, Reason.EQUAL_LOGPROBS)],
)
def test_three_prompts_make_a_sign(shown: dict[str, bool], reason: Reason) -> None:
    """And each further answer is one more."""
    assert reasons(Signs(), SICK, notes(4, **shown)) == [reason, reason]


def test_copies_of_one_prompt_make_none() -> None:
    """The prompt may be odd."""
    same = [Note(0.0, "p", wordless=True)] * 10
    assert reasons(Signs(), SICK, same) == []


def test_what_peers_show_too_is_the_traffics() -> None:
    """Clients may ask for strange things."""
    signs = Signs()
    reasons(signs, PEER, notes(10, wordless=True))
    assert reasons(signs, SICK, notes(10, wordless=True)) == []


def test_old_answers_do_not_count() -> None:
    """A sign is of now."""
    signs = Signs()
    reasons(signs, SICK, notes(2, wordless=True))
    late = Note(WINDOW_S + 1, "late", wordless=True)
    assert reasons(signs, SICK, [late]) == []


def test_an_engine_that_never_ends_is_known_by_its_peers() -> None:
    """Without them nobody knows what clients ask for."""
    signs = Signs()
    assert reasons(signs, SICK, notes(30, long=True, endless=True)) == []
    reasons(signs, PEER, notes(30, long=True))
    [found] = signs.answered(SICK, Note(0.0, "more", long=True, endless=True))
    assert found.reason is Reason.NEVER_ENDS
    assert found.details["peers_share"] == 0.0


def test_small_limits_are_the_clients_wish() -> None:
    """All instances of the pool stop there."""
    signs = Signs()
    reasons(signs, PEER, notes(30, long=True, endless=True))
    assert reasons(signs, SICK, notes(30, long=True, endless=True)) == []


def test_a_burst_of_refusals_is_one() -> None:
    """From the fifth on, of three prompts."""
    signs = Signs()
    found = [signs.refused(SICK, f"p{number % 3}", 0.0) for number in range(6)]
    assert [each.reason if each else None for each in found] == [
        *[None] * 4,
        *[Reason.BURST_OF_REFUSALS] * 2,
    ]


def test_lives_are_kept_apart() -> None:
    """A restarted engine begins with a clean sheet."""
    signs = Signs()
    reasons(signs, SICK, notes(2, wordless=True))
    reborn = Life("sick", 1, None, numbered=True)
    assert reasons(signs, reborn, notes(2, wordless=True)) == []
