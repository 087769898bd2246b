"""Admission, drain and death."""

import asyncio
from contextlib import suppress

import pytest

from gatemesh_engine_sim.engine import Engine
from gatemesh_engine_sim.errors import ApiError


class Caller:
    """Holds a slot until told to leave."""

    def __init__(self, engine: Engine) -> None:
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()
        self.task = asyncio.create_task(self._hold(engine))

    async def _hold(self, engine: Engine) -> str:
        try:
            async with engine.slot():
                self.entered.set()
                await self.leave.wait()
        except ApiError as error:
            return error.message
        return "answered"


async def entered(engine: Engine) -> Caller:
    """A caller that has its slot."""
    caller = Caller(engine)
    await asyncio.wait_for(caller.entered.wait(), 2)
    return caller


async def turns(count: int = 5) -> None:
    """Let the other tasks run as far as they can."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_others_wait_for_a_slot() -> None:
    """And enter when one leaves."""
    engine = Engine(max_running=1, max_waiting=None)
    first = await entered(engine)
    second = Caller(engine)
    await turns()
    assert (engine.running, engine.waiting) == (1, 1)
    first.leave.set()
    await asyncio.wait_for(second.entered.wait(), 2)
    assert (engine.running, engine.waiting) == (1, 0)
    second.leave.set()
    assert await second.task == "answered"
    assert engine.running == 0


async def test_full_queue_is_refused() -> None:
    """With status 503."""
    engine = Engine(max_running=1, max_waiting=1)
    first, second = await entered(engine), Caller(engine)
    await turns()
    with pytest.raises(ApiError) as refusal:
        async with engine.slot():
            pass
    assert refusal.value.status == 503
    for caller in (first, second):
        caller.leave.set()
        await caller.task


async def test_death_ends_all() -> None:
    """Running, waiting and new requests get the engine's error."""
    engine = Engine(max_running=1, max_waiting=None)
    first, second = await entered(engine), Caller(engine)
    await turns()
    engine.die()
    assert "EngineCore" in await first.task
    assert "EngineCore" in await second.task
    assert engine.is_dead
    await engine.wait_ended()
    assert "EngineCore" in await Caller(engine).task


async def test_drain_lets_running_requests_end() -> None:
    """New ones are refused meanwhile with vLLM's words."""
    engine = Engine(max_running=2, max_waiting=None)
    running = await entered(engine)
    drain = asyncio.create_task(engine.drain(60))
    await turns()
    assert "cannot schedule new futures" in await Caller(engine).task
    assert not engine.is_dead
    running.leave.set()
    await asyncio.wait_for(drain, 2)
    assert await running.task == "answered"
    assert engine.is_dead


async def test_drain_without_grace_aborts() -> None:
    """The default of vLLM."""
    engine = Engine(max_running=2, max_waiting=None)
    running = await entered(engine)
    await asyncio.wait_for(engine.drain(0), 2)
    assert "EngineCore" in await running.task


async def test_client_that_leaves_is_cancelled() -> None:
    """Its place is free again."""
    engine = Engine(max_running=1, max_waiting=None)
    caller = await entered(engine)
    caller.task.cancel()
    with suppress(asyncio.CancelledError):
        await caller.task
    assert caller.task.cancelled()
    assert engine.running == 0
    (await entered(engine)).leave.set()
