"""The words and protocols that backends and balancers share."""

import pytest

from gatemesh_executor.backends.base import (
    BackendUnavailableError,
    Observation,
    Phase,
    StartFailedError,
    StopFailedError,
)
from gatemesh_executor.balancers.agents import AgentRouting
from gatemesh_executor.balancers.base import (
    BalancerRefusedError,
    BalancerUnavailableError,
    Change,
    Rotation,
    Server,
    Standing,
    StillOutError,
    assert_each,
    change_for,
    weight_of,
)
from gatemesh_executor.balancers.fake import FakeBalancer, FakeRotation

from .conftest import INSTANCES, Time


def test_a_life_runs_until_it_is_gone() -> None:
    """Also while it stops: its requests may still be running."""
    assert Observation(Phase.STOPPING, "a").running
    assert not Observation(Phase.STARTING).running


def test_only_silence_is_worth_another_try() -> None:
    """A failed start would fail again."""
    assert BackendUnavailableError.retryable
    assert not StartFailedError.retryable
    assert not StopFailedError.retryable


def test_a_silent_balancer_is_worth_another_try() -> None:
    """One that does not know a server never will."""
    assert BalancerUnavailableError.retryable
    assert StillOutError.retryable
    assert not BalancerRefusedError.retryable


async def test_every_method_of_a_rotation_may_come_twice() -> None:
    """A redelivered command is harmless."""
    rotations: tuple[Rotation, ...] = (AgentRouting(6.0, Time().pace), FakeRotation())
    for rotation in rotations:
        for _ in range(2):
            await rotation.take_out(INSTANCES["engine-0"], 1)
            assert await rotation.put_back(INSTANCES["engine-0"]) == ()
        assert await rotation.sessions(INSTANCES["engine-0"]) is None


@pytest.mark.parametrize(
    ("share", "full", "weight"), [(1.0, 100, 100), (0.3, 100, 30), (0.1, 1, 1), (0.1, 256, 26)]
)
def test_a_weight_is_never_nothing(share: float, full: int, weight: int) -> None:
    """A balancer would take 0 for out."""
    assert weight_of(share, full) == weight


IN = Standing(out=False, weight=30, full_weight=100)
OUT = Standing(out=True, weight=30, full_weight=100)
BY_HAND = Standing(out=True, weight=30, full_weight=100, by_hand=True)


@pytest.mark.parametrize(
    ("found", "share", "change"),
    [
        (IN, 0.3, None),
        (IN, 0.4, Change.SET_WEIGHT),
        (IN, 0.0, Change.TAKE_OUT),
        (OUT, 0.3, Change.PUT_BACK),
        (OUT, 0.0, None),
        (BY_HAND, 0.0, None),
        (BY_HAND, 1.0, None),
    ],
)
def test_what_makes_a_standing_as_it_should_be(
    found: Standing, share: float, change: Change | None
) -> None:
    """A person's maintenance is nobody's to undo."""
    assert change_for(found, share) is change


async def test_a_refusal_about_one_server_keeps_no_other_waiting() -> None:
    """It is told all the same."""
    balancer, known, unknown = FakeBalancer(), Server("b", "s"), Server("b", "a")
    balancer.unknown.add(unknown)
    with pytest.raises(BalancerRefusedError, match="b/a"):
        await assert_each(balancer, {unknown: 0.0, known: 0.0})
    assert (await balancer.look(known)).out
