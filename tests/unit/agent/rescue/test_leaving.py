"""Those who wait for a first byte wait no longer than there is hope."""

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.agent.rescue.streams import Bench

from gatemesh_agent.errors import InstanceFailedError
from gatemesh_agent.reporting import Life
from gatemesh_agent.rescue import leaving
from gatemesh_agent.routing import PoolView
from gatemesh_common.messages import InstanceState

LIFE = Life("a", 0, None, numbered=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have them look often."""
    monkeypatch.setattr(leaving, "LOOK_EVERY_S", 0.001)


def eject(bench: Bench) -> None:
    """Take instance `a` out at once."""
    view = bench.router.view
    out = {"state": InstanceState.EJECTED, "in_rotation": False}
    changed = tuple(
        one.model_copy(update=out) if one.instance_id == "a" else one for one in view.instances
    )
    bench.router.view = PoolView(1, view.timestamp, changed)


async def waited(bench: Bench, may_leave: Callable[[], bool] | None = None) -> str:
    """Return why a wait ended that nothing ends."""
    with pytest.raises(InstanceFailedError) as failure:
        async with asyncio.timeout(5), bench.leaving.waiting(LIFE, may_leave):
            await asyncio.Event().wait()
    return failure.value.what


async def test_what_comes_in_time_is_taken() -> None:
    """The wait leaves nothing behind."""
    async with Bench().leaving.waiting(LIFE):
        await asyncio.sleep(0)


@pytest.mark.parametrize("may_leave", [None, lambda: False])
async def test_an_ejected_instance_is_left(may_leave: Callable[[], bool] | None) -> None:
    """Whole answers, too: they are asked elsewhere as they were."""
    bench = Bench()
    eject(bench)
    assert await waited(bench, may_leave) == "was taken out before its answer"


async def test_one_from_which_nothing_comes_for_anybody_is_left() -> None:
    """Where others get tokens it is a queue."""
    assert await waited(Bench(first_s=0.0)) == "stands still"
    bench = Bench(first_s=0.0)
    story = bench.story()
    wait = bench.attempt(story).wait
    async with asyncio.timeout(5), bench.leaving.waiting(wait.life):
        for at in range(20):
            bench.watch.note(wait, at + 1, 1e12)
            await asyncio.sleep(0.001)


async def test_the_last_one_that_can_be_asked_is_waited_for() -> None:
    """Nobody else would answer; a long prompt may take that long."""
    bench, alone = Bench(first_s=0.0), iter([True, True, False])
    with pytest.raises(InstanceFailedError, match="stands still"):
        async with (
            asyncio.timeout(5),
            bench.leaving.waiting(LIFE, is_last=lambda: next(alone)),
        ):
            await asyncio.Event().wait()
    assert next(alone, None) is None


async def test_where_streams_came_to_a_halt_hope_is_short() -> None:
    """And new requests go elsewhere first."""
    bench = Bench(first_s=9.0, stall_s=0.0)
    bench.leaving.note_stall(LIFE)
    assert bench.router.shunned_until["a"] > 0
    assert await waited(bench) == "stands still"


async def test_a_deadline_of_others_stays_theirs() -> None:
    """It is not taken for a loss of hope."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), Bench().leaving.waiting(LIFE):
            await asyncio.Event().wait()


async def test_a_whole_answer_is_waited_for_until_its_instance_is_proven_to_stand_still() -> None:
    """It tells nothing before its end; and leaving needs room."""
    bench, rooms = Bench(first_s=0.0, stall_s=0.0), iter([False, True])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02), bench.leaving.waiting(LIFE, lambda: True):
            await asyncio.Event().wait()
    bench.leaving.note_proof(LIFE)
    assert bench.router.shunned_until["a"] > 0
    assert await waited(bench, lambda: next(rooms)) == "stands still"
    assert next(rooms, None) is None


@pytest.mark.parametrize("moved_s", [0.0, 1e12])
async def test_a_proof_is_over_once_anything_comes(moved_s: float) -> None:
    """From there on it is a long answer again."""
    bench = Bench(stall_s=0.0)
    wait = bench.attempt(bench.story()).wait
    bench.leaving.note_proof(wait.life)
    bench.watch.note(wait, 1, moved_s)
    if not moved_s:
        assert await waited(bench, lambda: True) == "stands still"
        return
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05), bench.leaving.waiting(wait.life, lambda: True):
            await asyncio.Event().wait()
