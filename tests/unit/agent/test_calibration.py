"""What a model can answer, shown by its instances."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.calibration import MOST_VOTERS, RUNS_ALONE, Calibration, add_run
from gatemesh_agent.suite import Answer, ModelRule, Prompt, Suite, Way

IDS = ("a", "b", "c", "d")
SUITE = Suite(
    version="1",
    least_prompts=2,
    prompts=tuple(Prompt(id=name, text=name, expect=name) for name in IDS),
    models=(ModelRule(pattern="", calibrated=True),),
)


def run(matched: str) -> list[Answer]:
    """Return a clean run with these prompts right."""
    return [Answer(name, name in matched) for name in IDS]


def test_what_nobody_can_answer_is_dropped() -> None:
    """Wrong with both of two instances."""
    book = add_run(add_run(Calibration(), "e0/1", run("abc")), "e1/1", run("ab"))
    assert book.is_shown
    assert book.is_enough(SUITE)
    assert book.dropped(SUITE) == ["d"]


def test_a_damaged_instance_drops_nothing() -> None:
    """It answers less; what the healthy one answers stays."""
    book = add_run(add_run(Calibration(), "bad/1", run("")), "good/1", run("abcd"))
    assert book.dropped(SUITE) == []


def test_one_alone_has_to_show_it_repeatedly() -> None:
    """Once may be chance."""
    book = Calibration()
    for count in range(1, RUNS_ALONE + 1):
        book = add_run(book, "e0/1", run("ab"))
        assert book.is_shown is (count == RUNS_ALONE)
    assert book.voters == ("e0/1",)


def test_what_one_alone_could_not_answer_comes_back() -> None:
    """As soon as another life can."""
    book = Calibration()
    for _ in range(RUNS_ALONE):
        book = add_run(book, "e0/1", run("ab"))
    assert book.needs("e1/1")
    assert add_run(book, "e1/1", run("abcd")).dropped(SUITE) == []


@pytest.mark.parametrize(
    "answers",
    [
        [*run("abc"), Answer("d", matched=False, fault="repetition", way=Way.CACHED)],
        [*run("abc"), Answer("d", matched=False, busy=True)],
        [],
        [Answer("a", matched=True, way=Way.FRESH)],
    ],
)
def test_a_run_that_shows_nothing_is_not_taken(answers: list[Answer]) -> None:
    """Faulty, without room, empty, or only with the prefix."""
    assert add_run(Calibration(), "e0/1", answers) == Calibration()


@pytest.mark.parametrize(("right", "enough"), [("a", False), ("ab", True)])
def test_too_few_prompts_say_nothing(right: str, enough: bool) -> None:  # noqa: FBT001
    """At the limit and below."""
    assert add_run(Calibration(), "e0/1", run(right)).is_enough(SUITE) is enough


def test_later_instances_are_no_longer_asked_everything() -> None:
    """Hundreds of lives would otherwise ask for ever what none can answer."""
    book = Calibration(voters=tuple(f"e{number}/1" for number in range(MOST_VOTERS)))
    assert not book.needs("new/1")
    assert not Calibration(voters=("e0/1",)).needs("e0/1")


@given(st.lists(st.text("abcd"), max_size=6))
def test_right_answers_only_ever_add(runs: list[str]) -> None:
    """No order of instances drops what one of them answered."""
    book = Calibration()
    for number, matched in enumerate(runs):
        grown = add_run(book, f"e{number}/1", run(matched))
        assert book.right <= grown.right
        book = grown
    assert set(book.dropped(SUITE)) == set(IDS) - set("".join(runs))
