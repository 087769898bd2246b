"""Several executors on one queue: a long command holds up no other, and outlives its executor."""

import asyncio

import pytest

from gatemesh_common.broker import COMMANDS
from gatemesh_common.messages import EjectInstance, ReportOutcome, RestartInstance

from .conftest import DEADLINE_S, ExecutorProcess, Manager, Platform, kill_now

pytestmark = pytest.mark.integration

ONE_AT_A_TIME = {"GATEMESH_EXECUTOR_PREFETCH": "1", "GATEMESH_EXECUTOR_ADMIN_PORT": "0"}


async def until_read_by(manager: Manager, count: int) -> None:
    """Wait until so many executors read commands."""
    async with asyncio.timeout(DEADLINE_S):
        while await readers(manager) < count:  # noqa: ASYNC110 (the broker sends no event)
            await asyncio.sleep(0.05)


async def readers(manager: Manager) -> int:
    """Return how many executors read commands now."""
    channel = await manager.publisher.channel()
    declared = await channel.declare_queue(COMMANDS.name, passive=True)
    return declared.declaration_result.consumer_count or 0


async def test_a_long_command_is_gone_on_with_by_another_executor(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """One restart in all, one report; meanwhile the other executor obeyed what else came."""
    platform.start(engine_0=("--start-delay-s", "8"))
    first = executor.start(**ONE_AT_A_TIME)
    await until_read_by(manager, 1)
    long = await manager.order(RestartInstance, start_timeout_s=40)
    life = (await manager.observed(lambda it: it.running)).life_id
    executor.start(**ONE_AT_A_TIME)
    await until_read_by(manager, 2)
    other = await manager.order(EjectInstance, instance_id="engine-1")
    assert (await manager.report_of(other)).outcome is ReportOutcome.SUCCEEDED
    assert "ready" not in manager.steps_of(long)
    kill_now(first)
    report = await manager.report_of(long)
    assert (report.outcome, report.life_id) == (ReportOutcome.SUCCEEDED, life)
    assert manager.lives() == [life]
    assert manager.steps_of(long)[-1] == "ready"
