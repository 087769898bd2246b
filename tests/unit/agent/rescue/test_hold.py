"""Nothing is lost or turned round by a hold, whatever happens; every pair of its table is known."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.rescue.hold import (
    NOWHERE,
    TRANSITIONS,
    Flush,
    Hold,
    HoldBounds,
    IllegalHoldError,
    Mark,
    State,
    Trigger,
    Why,
    next_state,
)

OUTSIDE = sorted(set(product(State, Trigger)) - set(TRANSITIONS))
HERE = Mark(5, 2, 2)


@pytest.mark.parametrize(("state", "trigger"), OUTSIDE)
def test_a_pair_outside_the_table_raises(state: State, trigger: Trigger) -> None:
    """A hold that has tripped stays so."""
    with pytest.raises(IllegalHoldError, match=f"{trigger} while {state}"):
        next_state(state, trigger)


EVENTS = st.lists(
    st.tuples(st.binary(min_size=1, max_size=4), st.integers(0, 3), st.booleans(), st.floats(0, 2))
)


@given(EVENTS, st.integers(1, 6), st.floats(0.1, 4))
def test_held_and_flushed_is_what_came(
    events: list[tuple[bytes, int, bool, float]], tokens: int, seconds: float
) -> None:
    """On any stream that is never proven bad, byte for byte and in order."""
    hold, now_s, out = Hold(HoldBounds(tokens, seconds)), 0.0, b""
    for piece, count, doubted, later_s in events:
        now_s += later_s
        out += hold.expire(now_s) + hold.take(piece, NOWHERE, count, now_s, doubted=doubted)
        if not doubted:
            assert hold.state is State.PASSING
    assert out + hold.end(now_s) == b"".join(piece for piece, *_ in events)


def test_a_clean_event_passes_at_once() -> None:
    """And is not counted."""
    flushes: list[Flush] = []
    hold = Hold(HoldBounds(), flushes.append)
    assert hold.take(b"a", HERE, 1, 0.0, doubted=False) == b"a"
    assert (hold.wait_s(0.0), flushes) == (None, [])


def test_a_doubt_that_clears_lets_all_go() -> None:
    """With the event that cleared it."""
    flushes: list[Flush] = []
    hold = Hold(HoldBounds(), flushes.append)
    assert hold.take(b"a", HERE, 1, 1.0, doubted=True) == b""
    assert hold.take(b"b", HERE, 1, 1.5, doubted=False) == b"ab"
    assert flushes == [Flush(Why.CLEARED, 2, 0.5)]


@pytest.mark.parametrize(("events", "out"), [(2, b""), (3, b"aaa")])
def test_no_more_tokens_are_held_than_may_be(events: int, out: bytes) -> None:
    """Beyond them it lapses, and what follows passes until the doubt clears."""
    hold, got = Hold(HoldBounds(2)), b""
    for _ in range(events):
        got += hold.take(b"a", HERE, 1, 0.0, doubted=True)
    assert got == out
    if out:
        assert hold.take(b"b", HERE, 1, 0.0, doubted=True) == b"b"
        assert hold.take(b"c", HERE, 1, 0.0, doubted=False) == b"c"
        assert hold.take(b"d", HERE, 1, 0.0, doubted=True) == b""


def test_no_longer_than_may_be_though_nothing_comes() -> None:
    """The time until then is known to whoever waits."""
    hold = Hold(HoldBounds(9, 2.0))
    hold.take(b"a", HERE, 1, 1.0, doubted=True)
    assert hold.wait_s(1.5) == 1.5
    assert hold.expire(2.9) == b""
    assert hold.expire(3.0) == b"a"


def test_proof_drops_what_is_held() -> None:
    """The clean place is that before the first doubt."""
    flushes: list[Flush] = []
    hold = Hold(HoldBounds(), flushes.append)
    hold.take(b"a", HERE, 1, 0.0, doubted=True)
    assert hold.trip(1.0, Mark(9, 9, 9)) == HERE
    assert flushes == [Flush(None, 1, 1.0)]


def test_proof_without_a_doubt_leaves_the_place() -> None:
    """What passed is with the client."""
    assert Hold(HoldBounds()).trip(0.0, HERE) == HERE
