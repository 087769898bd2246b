"""Limits, stop strings and finish reasons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_engine_sim.generation import emissions, first_stop
from gatemesh_engine_sim.steps import END_TOKEN, Step

END = Step("", END_TOKEN, 2, -0.1, ())


def steps(*texts: str) -> tuple[Step, ...]:
    """A finished answer of these tokens."""
    return (*(Step(text, text, 9, -0.5, ()) for text in texts), END)


@pytest.mark.parametrize(
    ("max_tokens", "reason", "count"),
    [
        pytest.param(2, "length", 2, id="cut"),
        pytest.param(3, "length", 3, id="all-but-the-end"),
        pytest.param(4, "stop", 4, id="exactly"),
        pytest.param(9, "stop", 4, id="room-left"),
    ],
)
def test_finish_reason(max_tokens: int, reason: str, count: int) -> None:
    """The end token counts as a token."""
    sent = emissions(steps("a", "b", "c"), max_tokens, ())
    assert (sent[-1].finish_reason, len(sent)) == (reason, count)
    assert all(one.finish_reason is None for one in sent[:-1])


def test_stop_string_across_tokens() -> None:
    """The text before it was held back, so nothing of it shows."""
    sent = emissions(steps("one", " ST", "OP", " two"), 10, ["STOP"])
    assert "".join(one.text for one in sent) == "one "
    assert (sent[-1].finish_reason, sent[-1].stop_reason) == ("stop", "STOP")
    assert len(sent) == 3


def test_held_text_is_sent_at_the_end() -> None:
    """What could have become a stop string and did not."""
    sent = emissions(steps("one", " ST", "ay"), 10, ["STOP"])
    assert "".join(one.text for one in sent) == "one STay"
    assert (sent[-1].finish_reason, sent[-1].stop_reason) == ("stop", None)


def test_stop_in_the_last_token() -> None:
    """Also when the answer is cut there."""
    sent = emissions(steps("one", "X")[:2], 2, ["X"])
    assert [one.text for one in sent] == ["one", ""]
    assert sent[-1].stop_reason == "X"


def test_earliest_stop_wins() -> None:
    """Whatever the order they were given in."""
    assert first_stop("a-b+c", ["+", "-"]) == (1, "-")
    assert first_stop("abc", ["", "x"]) is None


@given(
    st.lists(st.text("abS", max_size=3), min_size=1),
    st.lists(st.text("abS", min_size=1, max_size=3), max_size=2),
    st.integers(1, 20),
)
def test_text_is_that_before_the_first_stop(texts: list[str], stops: list[str], limit: int) -> None:
    """For any cutting into tokens: what a later token would complete is not waited for."""
    sent = emissions(steps(*texts), limit, stops)
    wholes = ["".join(texts[:count]) for count in range(1, len(texts[:limit]) + 1)]
    ended = ((whole, found) for whole in wholes if (found := first_stop(whole, stops)))
    whole, found = next(ended, (wholes[-1], None))
    assert "".join(one.text for one in sent) == (whole[: found[0]] if found else whole)
    assert (sent[-1].stop_reason is not None) == (found is not None)
