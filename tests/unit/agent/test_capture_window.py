"""A capture shows the steps around the fault, with figures that are figures."""

import math
from typing import Any

import pytest

from gatemesh_agent.capture_window import (
    Piece,
    bounds_of,
    entropy_of,
    is_at_fault,
    pieces_of,
    shown_pieces,
    step_of,
)
from gatemesh_agent.dialects import read_choices
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.reading import NOTHING
from gatemesh_agent.recent import BEFORE, Reach, Window
from gatemesh_common.captures import MOST_CANDIDATES, MOST_STEPS
from gatemesh_common.messages import Span

from .test_recent import verdict

NAN = float("nan")


def window(*events: dict[str, Any], span: Span | None = None, at: Reach | None = None) -> Window:
    """Return a window over events."""
    end = at or Reach(len(events), len(events), len(events))
    return Window(
        verdict=verdict(span=span),
        before=events,
        after=(),
        at=end,
        seen=end,
        running={},
        read=lambda fields: read_choices(fields, None),
    )


def chat(text: str, *steps: str) -> dict[str, Any]:
    """Return an event, or a whole answer, of so many steps."""
    content = [{"token": step, "logprob": -0.5, "top_logprobs": []} for step in steps]
    choice = {"index": 0, "delta": {"content": text}, "logprobs": {"content": content}}
    return {"choices": [choice]}


def test_steps_are_numbered_by_their_place_in_the_answer() -> None:
    """Not in the window."""
    events = (chat("ab", "a", "b"), chat("c", "c"))
    pieces = list(pieces_of(window(*events, at=Reach(9, 10, 20))))
    assert [(one.n, one.start, one.end) for one in pieces] == [
        (7, 17, 18),
        (8, 18, 19),
        (9, 19, 20),
    ]


def test_an_answer_without_figures_is_shown_in_pieces() -> None:
    """Some routes know no log probabilities."""
    pieces = list(pieces_of(window(chat("Hi"), chat(" you"), at=Reach(2, 0, 6))))
    assert [(one.n, one.start, one.end, one.step) for one in pieces] == [
        (0, 0, 2, None),
        (1, 2, 6, None),
    ]


def test_steps_whose_texts_are_not_the_text_share_it() -> None:
    """As of a sign that several tokens spell: none of it is lost, none told twice."""
    steps = (TokenStep("\ufffd", -1.0), TokenStep("\ufffd", -1.0), TokenStep("", -1.0))
    assert bounds_of(NOTHING._replace(text="😀!ab", steps=steps), 5) == [5, 6, 7, 9]


@pytest.mark.parametrize(
    ("span", "at_fault"),
    [
        (None, []),
        (Span(token_start=3), [3]),
        (Span(token_start=3, token_end=5), [3, 4]),
        (Span(char_start=10, char_end=15), [2]),
        (Span(char_start=14, char_end=16), [2, 3]),
        (Span(char_start=20, char_end=20), [4]),
        (Span(token_start=1, char_start=20, char_end=30), [1]),
    ],
)
def test_what_is_at_fault(span: Span | None, at_fault: list[int]) -> None:
    """Half-open; tokens tell better than characters."""
    pieces = [Piece(n, 5 * n, 5 * n + 5, None) for n in range(6)]
    assert [one.n for one in pieces if is_at_fault(one, span)] == at_fault


@pytest.mark.parametrize(
    ("onset", "begin"), [(0, 0), (BEFORE, 0), (BEFORE + 1, 1), (500, 436), (999, 888)]
)
def test_of_a_whole_answer_the_part_around_the_fault_is_shown(onset: int, begin: int) -> None:
    """Not more than may travel, from before its onset on."""
    answer = chat("x" * 1000, *["x"] * 1000)
    span = Span(token_start=onset, token_end=1000)
    shown = shown_pieces(window(answer, span=span, at=Reach(1, 1000, 1000)))
    assert (shown[0].n, len(shown)) == (begin, MOST_STEPS)


@pytest.mark.parametrize("odd", [NAN, math.inf, -math.inf, None, 37.5, -1e6])
def test_what_is_no_log_probability_is_no_figure(odd: float | None) -> None:
    """JSON has no word for it, and entropy none either."""
    step = step_of(Piece(0, 0, 1, TokenStep("a", odd, (odd, -0.1))), None)
    assert (step.logprob, step.entropy, step.top) == (None, None, (-0.1,))


def test_figures_are_those_of_the_likeliest() -> None:
    """Falling, few, and the entropy's bound beside them."""
    top = tuple(math.log(share) for share in (0.01, 0.4, 0.3, 0.1, 0.1, 0.05))
    step = step_of(Piece(0, 0, 1, TokenStep("a", top[0], top)), Span(token_start=0))
    assert step.fault
    assert step.top == tuple(round(math.log(one), 4) for one in (0.4, 0.3, 0.1, 0.1, 0.05))
    assert len(step.top) == MOST_CANDIDATES
    assert step.entropy is not None
    assert 1.3 < step.entropy < 1.6


def test_one_figure_alone_bounds_something() -> None:
    """As where the client asked for none but the chosen token's."""
    assert entropy_of(TokenStep("a", math.log(0.5))) == pytest.approx(math.log(2), abs=1e-4)
