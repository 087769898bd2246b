"""Doubts rise with the first bad token, and rarely and shortly on clean text."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.entropy import measure
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.reading import NOTHING, OTHER, Reading
from gatemesh_agent.rescue.doubts import Doubts, doubts_of, may_become_mark
from gatemesh_engine_sim.library import load_library

CLEAN = (-0.3, -2.0, -3.0, -4.0, -4.5, -5.0, -5.5, -9.0)
GREEDY = {"temperature": 0}
DRAWN = {"temperature": 1.0}


def step(text: str, *top: float, chosen: float | None = None, number: int = 1) -> TokenStep:
    """Return a step whose first candidate was taken, or another one."""
    figures = top or CLEAN
    taken = figures[0] if chosen is None else chosen
    listed = figures if chosen is None else (chosen, *figures)
    return TokenStep(text, taken, listed, token_id=number)


def take(doubts: Doubts, text: str, *steps: TokenStep, suspicion: float = 0.0) -> bool:
    """Show an event with these steps; return whether it is doubted."""
    for each in steps:
        doubts.follow(each, measure(each))
    doubts.take(Reading(text, steps, other_output=False, calls=()), suspicion)
    return doubts.is_open


FLAT = (-10.8,) * 8
SURE = (0.0, -20.0, -20.1, -20.2, -20.3, -20.4, -20.5, -20.6)
BAD = [
    pytest.param(GREEDY, step("", *FLAT), id="flat"),
    pytest.param(GREEDY, step(" the", *SURE), id="stuck"),
    pytest.param(GREEDY, step(" the", chosen=-9.0), id="not-the-likeliest"),
    pytest.param(DRAWN, step(" the", chosen=-14.0), id="out-of-line"),
    pytest.param(DRAWN, step(" the", *(-5.5 - at / 8 for at in range(8))), id="undecided"),
    pytest.param(GREEDY, step("\ufffd"), id="replacement"),
    pytest.param(GREEDY, step("<|im_end|>"), id="mark"),
    pytest.param(GREEDY, step("\x07"), id="control"),
    pytest.param(GREEDY, step("!!!!"), id="signs"),
]


@pytest.mark.parametrize(("body", "bad"), BAD)
def test_the_first_bad_token_is_doubted(body: dict[str, float], bad: TokenStep) -> None:
    """Behind clean ones that are not."""
    doubts = doubts_of(body)
    assert not take(doubts, " word", step(" word", number=5))
    assert take(doubts, bad.text, bad)


@pytest.mark.parametrize(("body", "bad"), BAD)
def test_it_is_as_the_first_of_all(body: dict[str, float], bad: TokenStep) -> None:
    """Nothing before it is needed."""
    assert take(doubts_of(body), bad.text, bad)


def test_a_doubt_about_figures_clears_with_the_next_token() -> None:
    """It costs the client one token's time."""
    doubts = doubts_of(GREEDY)
    assert take(doubts, " the", step(" the", *SURE))
    assert not take(doubts, " cat", step(" cat", number=2))


def test_figures_that_stand_still_are_doubted() -> None:
    """From their second time on; one that is repeated, too."""
    doubts = doubts_of(GREEDY)
    assert not take(doubts, " a", step(" a", number=1))
    assert take(doubts, " b", step(" b", number=2))
    assert take(doubts, " b", step(" b", -0.4, -2.0, -3.0, number=2))


def test_small_surprises_add_up() -> None:
    """Each alone is usual; a run of them is not."""
    doubts = doubts_of(DRAWN)
    rose = [
        take(doubts, f" w{at}", step(f" w{at}", *CLEAN[:-1], -7 - at / 9, chosen=-5.4, number=at))
        for at in range(5)
    ]
    assert not rose[0]
    assert rose[-1]


def test_draws_are_not_doubted_where_the_figures_are_not_theirs() -> None:
    """As with penalties, at a high temperature, or at one that is not known."""
    odd = step(" the", chosen=-14.0)
    for body in ({}, {"temperature": 2.0}, {"temperature": 1.0, "repetition_penalty": 1.1}):
        assert not take(doubts_of(body), " the", odd)


def test_without_figures_text_that_repeats_is_doubted() -> None:
    """Blanks are not, unless there are many."""
    doubts = doubts_of(GREEDY)
    assert not take(doubts, " the")
    assert take(doubts, " the")
    assert not take(doubts, " end")
    assert [take(doubts, "\n") for _ in range(3)] == [False, False, True]
    assert not take(doubts, "x")


def test_a_loop_on_its_way_is_doubted() -> None:
    """As L1 tells."""
    doubts = doubts_of(GREEDY)
    assert take(doubts, " a", suspicion=0.35)
    assert not take(doubts, " b", suspicion=0.34)


def test_tokens_without_text_are_doubted_after_a_few() -> None:
    """The first one may tell a chat's role; reasoning and calls are not empty."""
    doubts = doubts_of(GREEDY)
    assert [take(doubts, "") for _ in range(3)] == [False, True, True]
    assert not take(doubts, "a")
    told = NOTHING._replace(steps=(step(""),))
    for is_open in (False, False, False, True):
        doubts.take(told, 0.0)
        assert doubts.is_open is is_open
    doubts.take(OTHER, 0.0)
    assert not doubts.is_open
    doubts.take(NOTHING, 0.0)
    assert not doubts.is_open


def test_odd_signs_are_doubted_until_l1_has_judged_them() -> None:
    """It reads in blocks."""
    doubts = doubts_of(GREEDY)
    assert take(doubts, "\ufffd", step("\ufffd"))
    assert take(doubts, " so it goes", step(" so it goes", number=2))
    rest = " and on" * 9
    assert not take(doubts, rest, step(rest, -0.4, -2.1, number=3))


@pytest.mark.parametrize(
    ("tail", "may"),
    [("a <|im_", True), ("a <", True), ("a <div", False), ("a [INS", True), ("a [1, 2", False)],
)
def test_a_mark_under_way_is_doubted(tail: str, may: bool) -> None:  # noqa: FBT001
    """As long as it may become one."""
    assert may_become_mark(tail) == may


@given(st.lists(st.sampled_from([" a", " b", "!!!!", "\ufffd", "\n", ""]), max_size=12))
def test_what_is_doubted_depends_on_the_tokens_only(texts: list[str]) -> None:
    """Two followers of one stream never differ."""
    one, other = doubts_of(GREEDY), doubts_of(GREEDY)
    for at, text in enumerate(texts):
        here = step(text, number=at)
        assert take(one, text, here) == take(other, text, here)


def simulated() -> Iterator[list[TokenStep]]:
    """Yield the steps of a simulated engine's clean answers."""
    for said in load_library().passages():
        yield [
            TokenStep(one.text, one.logprob, tuple(each.logprob for each in one.top))
            for one in said
        ]


def test_clean_answers_are_held_rarely_and_shortly() -> None:
    """Less than a fiftieth of the tokens, mostly for one token."""
    tokens, runs = 0, []
    for steps in simulated():
        doubts, run = doubts_of(GREEDY), 0
        for each in steps:
            tokens += 1
            if take(doubts, each.text, each):
                run += 1
            elif run:
                runs.append(run)
                run = 0
    assert tokens > 4_000
    assert sum(runs) < tokens / 50
    assert sorted(runs)[len(runs) * 95 // 100] <= 4
