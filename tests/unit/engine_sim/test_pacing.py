"""When tokens are due."""

import asyncio

import pytest

from gatemesh_engine_sim.pacing import Pace


@pytest.mark.parametrize(
    ("pace", "place", "due_s"),
    [
        (Pace(), 0, 0.0),
        (Pace(), 100, 0.0),
        (Pace(first_token_s=0.5), 100, 0.5),
        (Pace(tokens_per_s=10), 5, 0.5),
        (Pace(0.25, 10), 5, 0.75),
        (Pace(0.0, 10, 5, 2.0), 5, 0.5),
        (Pace(0.0, 10, 5, 2.0), 7, 1.5),
        (Pace(slow_from=0, slow_tokens_per_s=2.0), 4, 2.0),
    ],
)
def test_due(pace: Pace, place: int, due_s: float) -> None:
    """First token, then an even rhythm."""
    assert pace.due_s(place) == pytest.approx(due_s)


def test_instant() -> None:
    """Only without any delay."""
    assert Pace().is_instant
    assert not Pace(first_token_s=0.1).is_instant
    assert not Pace(tokens_per_s=1).is_instant
    assert not Pace(slow_from=0).is_instant


async def test_late_tokens_are_not_waited_for() -> None:
    """A stream that fell behind catches up."""
    await asyncio.wait_for(Pace(1.0, 1.0).reach(5, begun_s=0.0, clock=lambda: 100.0), 2)


async def test_others_run_in_between() -> None:
    """Even without delays one stream does not block the rest."""
    ran = asyncio.Event()
    asyncio.get_running_loop().call_soon(ran.set)
    await Pace().reach(0, 0.0, lambda: 0.0)
    assert ran.is_set()
