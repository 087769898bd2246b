"""What stands of an answer, whoever wrote it."""

from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.reading import Reading
from gatemesh_agent.rescue.hold import NOWHERE, Mark
from gatemesh_agent.rescue.kept import Kept, Places, fits, known_ids
from gatemesh_agent.transcript import MOST_TOKENS, Transcript


def said(*texts: str, numbered: bool = True) -> Transcript:
    """Return what an engine said, token by token."""
    transcript = Transcript()
    for number, text in enumerate(texts):
        step = TokenStep(text, -0.1, token_id=number if numbered else None)
        transcript.take(Reading(text, (step,), other_output=False, calls=()))
    return transcript


def test_parts_of_several_engines_join() -> None:
    """Up to the place where each was cut."""
    kept = Kept().then(said("a", "bc", "d"), Mark(3, 2, 2), by_id=True)
    assert kept == Kept("abc", (0, 1), 2)
    assert kept.then(said("x", "y"), Mark(1, 1, 1), by_id=True) == Kept("abcx", (0, 1, 0), 3)


def test_what_was_said_again_is_kept_once() -> None:
    """Its client got the blanks of the first engine only."""
    kept = Kept("The sea is\n\n", None, 4)
    joined = kept.then(said("\n\n", "wide"), Mark(6, 2, 2), by_id=False, again=2)
    assert joined.text == "The sea is\n\nwide"
    assert kept.then(said("\n\n"), Mark(1, 1, 1), by_id=False, again=2).text == kept.text


def test_ids_are_known_all_or_none() -> None:
    """One engine that tells none is enough."""
    kept = Kept().then(said("a", numbered=False), Mark(1, 1, 1), by_id=True)
    assert kept.ids is None
    assert kept.then(said("b"), Mark(1, 1, 1), by_id=True).ids is None
    assert Kept().then(said("a"), Mark(1, 1, 1), by_id=False).ids is None
    assert known_ids([1, 2], 3) is None


def test_an_answer_that_was_too_long_to_be_kept_does_not_fit() -> None:
    """Nobody could go on with it."""
    transcript = Transcript()
    assert fits(transcript)
    transcript.steps = MOST_TOKENS + 1
    assert not fits(transcript)


def test_places_are_behind_texts_only() -> None:
    """Tokens without text are no place to cut."""
    places = Places()
    assert places.clean == NOWHERE
    places.add(Mark(1, 1, 1), said=True)
    places.add(Mark(1, 2, 2), said=False)
    places.add(Mark(4, 3, 3), said=True)
    assert (places.clean, places.last) == (Mark(4, 3, 3), Mark(4, 3, 3))
    assert places.before(step=2) == Mark(1, 1, 1)
    assert places.before(char=3) == Mark(1, 1, 1)
    assert places.before(step=0) == NOWHERE


def test_old_places_are_forgotten_but_for_the_first() -> None:
    """A long stream costs no more than a short one."""
    places = Places()
    for at in range(1, 10_000):
        places.add(Mark(at, at, at), said=True)
    assert len(places.marks) <= 2 * Places.MOST
    assert places.before(step=9_990) == Mark(9_990, 9_990, 9_990)
    assert places.before(step=3) == NOWHERE
