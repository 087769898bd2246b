"""The words and protocols that backends and balancers share."""

from gatemesh_executor.backends.base import (
    BackendUnavailableError,
    Observation,
    Phase,
    StartFailedError,
    StopFailedError,
)
from gatemesh_executor.balancers.agents import AgentRouting
from gatemesh_executor.balancers.base import Balancer
from gatemesh_executor.balancers.fake import FakeBalancer

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


async def test_every_method_of_a_balancer_may_come_twice() -> None:
    """A redelivered command is harmless."""
    balancers: tuple[Balancer, ...] = (AgentRouting(6.0, Time().pace), FakeBalancer())
    for balancer in balancers:
        for _ in range(2):
            await balancer.take_out(INSTANCES["engine-0"])
            await balancer.put_back(INSTANCES["engine-0"])
