"""Those who wait for a first byte wait no longer than there is hope."""

import asyncio

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


async def waited(bench: Bench, *, streamed: bool = True) -> str:
    """Return why a wait ended that nothing ends."""
    with pytest.raises(InstanceFailedError) as failure:
        async with asyncio.timeout(5), bench.leaving.waiting(LIFE, streamed=streamed):
            await asyncio.Event().wait()
    return failure.value.what


async def test_what_comes_in_time_is_taken() -> None:
    """The wait leaves nothing behind."""
    async with Bench().leaving.waiting(LIFE, streamed=True):
        await asyncio.sleep(0)


@pytest.mark.parametrize("streamed", [True, False])
async def test_an_ejected_instance_is_left(streamed: bool) -> None:  # noqa: FBT001
    """Whole answers, too: they are asked elsewhere as they were."""
    bench = Bench()
    eject(bench)
    assert await waited(bench, streamed=streamed) == "was taken out before its answer"


async def test_one_from_which_nothing_comes_for_anybody_is_left() -> None:
    """Where others get tokens it is a queue."""
    assert await waited(Bench(first_s=0.0)) == "stands still"
    bench = Bench(first_s=0.0)
    story = bench.story()
    wait = bench.attempt(story).wait
    async with asyncio.timeout(5), bench.leaving.waiting(wait.life, streamed=True):
        for at in range(20):
            bench.watch.note(wait, at + 1, 1e12)
            await asyncio.sleep(0.001)


async def test_where_streams_came_to_a_halt_hope_is_short() -> None:
    """And new requests go elsewhere first."""
    bench = Bench(first_s=9.0, stall_s=0.0)
    bench.leaving.note_stall(LIFE)
    assert bench.router.shunned_until["a"] > 0
    assert await waited(bench) == "stands still"


async def test_a_deadline_of_others_stays_theirs() -> None:
    """It is not taken for a loss of hope."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), Bench().leaving.waiting(LIFE, streamed=True):
            await asyncio.Event().wait()
