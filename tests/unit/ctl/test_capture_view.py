"""A capture is read at a glance, with colours and without."""

from typing import Any

import pytest
from rich.console import Console

from gatemesh_ctl.capture_view import bar, shown, step_rows, style_of, window_of
from gatemesh_ctl.store import Row


def step(n: int, entropy: float | None = 0.2, *, fault: bool = False) -> Row:
    """Return one step."""
    return {"n": n, "logprob": -0.5, "entropy": entropy, "top": [-0.5, -1.25], "fault": fault}


def capture(**more: Any) -> Row:
    """Return a capture as the view has it."""
    row: Row = {
        "capture_id": "c-1",
        "steps": [step(4), step(5, 3.0, fault=True), step(6, None, fault=True), step(7, 9.9)],
        "fault_from": 5,
        "fault_until": 7,
        "model": "qwen",
        "engine_version": None,
        "labels": {"gpu": "7"},
        "sampling": {"temperature": 0.7},
        "gates": {"L3": {"max_entropy_nats": 9.9}},
        "text_policy": "window",
        "text_withheld": None,
        "redactions": {"email": 1},
        "second_instance_id": None,
    }
    return row | more


def printed(capture: Row, texts: Row | None, note: str = "") -> str:
    """Return what a terminal without colours shows."""
    console = Console(width=120, no_color=True, force_terminal=False)
    with console.capture() as taken:
        console.print(shown(capture, texts, note))
    return taken.get()


def test_tokens_are_shown_with_the_fault_marked() -> None:
    """And what else is known of the moment."""
    texts = {"tokens": ["Hi ", "[email]", "", "[/]."], "prompt": "user: hi", "answer": None}
    told = printed(capture(), texts | {"second_answer": None})
    assert "Hi \u27e6[email]\u27e7[/]." in told
    for word in ("engine: qwen", "gpu=7", "temperature=0.7", "max_entropy_nats=9.9", "email=1"):
        assert word in told
    assert "prompt: user: hi" in told


def test_without_text_bars_stand_for_steps() -> None:
    """As high as the entropy, and a note says why."""
    told = printed(capture(), None, "its text is for others")
    assert "\u2581\u27e6\u2584\u00b7\u27e7\u2588" in told
    assert "its text is for others" in told
    assert "text withheld: late" in printed(capture(text_withheld="late"), None)


def test_a_fault_without_text_is_seen() -> None:
    """As of a hidden token."""
    texts: Row = {"tokens": ["Hi", ""]}
    assert window_of([step(0), step(1, None, fault=True)], texts).plain == "Hi\u27e6\u00b7\u27e7"


def test_a_fault_at_the_end_is_closed() -> None:
    """The mark has two sides."""
    assert window_of([step(0), step(1, fault=True)], None).plain.endswith("\u27e7")


def test_a_capture_without_steps_is_shown() -> None:
    """Of a refusal, or of two answers that were compared."""
    texts: Row = {"tokens": [], "prompt": None, "answer": "Paris", "second_answer": "Berlin"}
    told = printed(capture(steps=[], fault_from=None, second_instance_id="engine-1"), texts)
    assert "answer: Paris" in told
    assert "second_answer: Berlin" in told
    assert "second: engine-1" in told


@pytest.mark.parametrize(
    ("entropy", "colour", "height"),
    [
        (None, "bright_black", "\u00b7"),
        (0.0, "green", "\u2581"),
        (0.5, "yellow", "\u2581"),
        (2.0, "dark_orange", "\u2583"),
        (4.0, "red", "\u2585"),
        (99.0, "red", "\u2588"),
    ],
)
def test_entropy_has_a_colour_and_a_height(entropy: float | None, colour: str, height: str) -> None:
    """Each limit belongs to the wider side."""
    assert (style_of(step(0, entropy)), bar(entropy)) == (colour, height)


def test_nothing_steers_the_terminal() -> None:
    """A damaged engine writes anything, and so do clients."""
    hostile = "a\x1b[2Jb"
    texts: Row = {"tokens": [hostile] * 4, "prompt": hostile, "answer": hostile}
    row = capture(model=hostile, labels={"gpu": hostile}, reason=hostile)
    told = printed(row, texts | {"second_answer": hostile})
    assert "\x1b" not in told
    assert "answer: a\ufffd[2Jb" in told


def test_the_figures_around_the_fault_are_listed() -> None:
    """Not all of a long window."""
    steps = [step(n, fault=n == 50) for n in range(100)]
    rows = step_rows(capture(steps=steps, fault_from=50, fault_until=51), None)
    assert [row["n"] for row in rows] == list(range(42, 59))
    assert rows[0]["top"] == "-0.50 -1.25"
    rows = step_rows(capture(steps=steps, fault_from=None, fault_until=None), None)
    assert [row["n"] for row in rows] == list(range(91, 100))
