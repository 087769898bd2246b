"""What is observed, and when it is published."""

import pytest

from gatemesh_common.admin import Readiness
from gatemesh_common.errors import BrokerUnavailableError
from gatemesh_common.messages import InstanceObserved
from gatemesh_executor.backends.base import Observation, Phase
from gatemesh_executor.observer import Observer, Published, due_instances, is_news

from .conftest import INSTANCES, START, World

A = Observation(Phase.RUNNING, "a", START)
B = Observation(Phase.RUNNING, "b", START)
DEAD = Observation(Phase.EXITED, exit_code=0)


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        pytest.param(A, A, False, id="same"),
        pytest.param(A, B, True, id="restarted-between-two-looks"),
        pytest.param(A, DEAD, True, id="died-with-code-0"),
        pytest.param(DEAD, A, True, id="started"),
        pytest.param(DEAD, Observation(Phase.STOPPED, exit_code=-1), True, id="other-code"),
        pytest.param(A, Observation(Phase.STOPPING, "a", START), False, id="only-the-phase"),
    ],
)
def test_news(before: Observation, after: Observation, news: bool) -> None:  # noqa: FBT001
    """Every life and every end is told; a change of words is not."""
    assert is_news(before, after) is news


@pytest.mark.parametrize(("now", "due"), [(104.9, ()), (105.0, ("x",))])
def test_the_unchanged_is_repeated(now: float, due: tuple[str, ...]) -> None:
    """A manager that missed one learns it in time."""
    assert due_instances({"x": A}, {"x": Published(A, 100.0)}, now, 5.0) == due


def test_the_new_and_the_changed_are_due_at_once() -> None:
    """Nobody waits for the repetition."""
    observed = {"new": A, "changed": B, "same": A}
    published = {"changed": Published(A, 9.9), "same": Published(A, 9.9)}
    assert due_instances(observed, published, 10.0, 5.0) == ("new", "changed")


@pytest.fixture
def observer(world: World) -> Observer:
    """Give an observer of that world."""
    readiness = Readiness("backend", "broker")
    return Observer(
        world.backend,
        INSTANCES,
        world.sender,
        world.time.clock,
        readiness,
        pace=world.time.pace,
    )


def told(world: World) -> list[tuple[str, bool, int | None]]:
    """Return what was published, in short, and forget it."""
    sent, world.sender.sent = world.sender.sent, []
    observed = [message for message in sent if isinstance(message, InstanceObserved)]
    return [(it.instance_id, it.running, it.exit_code) for it in observed]


async def test_life_and_death_are_told_once(world: World, observer: Observer) -> None:
    """First all of them, then only changes."""
    await observer.look()
    assert told(world) == [("engine-0", False, None), ("engine-1", False, None)]
    await observer.look()
    assert told(world) == []
    world.backend.crash("engine-0")
    await observer.look()
    assert told(world) == [("engine-0", False, 0)]


async def test_silence_of_the_platform_is_not_told_as_death(
    world: World, observer: Observer
) -> None:
    """The manager would restart a healthy fleet."""
    await world.start()
    await observer.look()
    told(world)
    world.backend.down = True
    world.time.elapsed_s += 60
    await observer.look()
    assert told(world) == []
    assert observer.readiness.missing() == ("backend",)
    world.backend.down = False
    await observer.look()
    assert len(told(world)) == 2
    assert observer.readiness.missing() == ()


async def test_what_the_broker_missed_is_told_later(world: World, observer: Observer) -> None:
    """The newest state then, not each one in between."""
    world.sender.faults = [BrokerUnavailableError("away")] * 2
    await observer.look()
    assert observer.readiness.missing() == ("broker",)
    await world.start()
    await observer.look()
    assert told(world) == [("engine-0", True, None), ("engine-1", False, None)]
    assert observer.readiness.missing() == ()


class EnoughError(Exception):
    """Ends a loop that never ends."""


async def test_it_looks_at_least_twice_a_second(world: World, observer: Observer) -> None:
    """A death is told within half a second."""

    def stop_after_a_second() -> None:
        if world.time.elapsed_s >= 1.0:
            raise EnoughError

    looks = 0

    def count() -> None:
        nonlocal looks
        looks += 1

    world.time.on_sleep += [count, stop_after_a_second]
    with pytest.raises(EnoughError):
        await observer.run()
    assert looks >= 2


async def test_news_that_wait_for_the_broker_keep_their_moment(
    world: World, observer: Observer
) -> None:
    """Else a stop seen before a restart would look newer than the restart's report."""
    looked_at = world.time.clock()
    world.sender.on_publish = lambda: setattr(world.time, "elapsed_s", world.time.elapsed_s + 5)
    await observer.look()
    assert [message.timestamp for message in world.sender.sent] == [looked_at] * 2
