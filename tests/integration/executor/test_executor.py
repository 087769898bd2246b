"""The executor as a process, over a real broker, on real processes."""

import asyncio
import shutil
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from aio_pika import Message

from gatemesh_common.broker import COMMANDS, DEAD_LETTERS
from gatemesh_common.messages import (
    CONTROL,
    DrainInstance,
    EjectInstance,
    InstanceCommand,
    ReadmitInstance,
    RepairInstance,
    ReplaceInstance,
    ReportOutcome,
    RestartInstance,
    RollBackInstance,
    RoutingApplied,
)
from gatemesh_executor.playbooks import LAST_TRY, PLAYBOOKS

from .conftest import DEADLINE_S, ExecutorProcess, Manager, Platform, kill_now, until_exit

pytestmark = pytest.mark.integration

KINDS: dict[str, type[InstanceCommand]] = {
    "drain": DrainInstance,
    "eject": EjectInstance,
    "restart": RestartInstance,
    "readmit": ReadmitInstance,
    "repair": RepairInstance,
    "replace": ReplaceInstance,
    "roll_back": RollBackInstance,
}


async def running_life(platform: Platform, manager: Manager) -> str:
    """Start the first engine and wait until the executor tells of its life."""
    platform.supervision.start_program("engine-0")
    found = await manager.observed(lambda it: it.running)
    assert found.life_id is not None
    return found.life_id


async def until_serving(platform: Platform) -> None:
    """Wait until the first engine answers."""
    url = f"http://127.0.0.1:{platform.ports['engine-0']}/health"
    async with asyncio.timeout(DEADLINE_S), aiohttp.ClientSession() as session:
        while not await answers(session, url):  # noqa: ASYNC110 (a page, no event)
            await asyncio.sleep(0.05)


async def answers(session: aiohttp.ClientSession, url: str) -> bool:
    """Return True when someone answers at the address."""
    try:
        async with session.get(url):
            return True
    except aiohttp.ClientError:
        return False


async def test_weights_are_replaced(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """Condition D: the old life ends, and a new one loads what was pulled and proven."""
    platform.start()
    executor.start()
    old = await running_life(platform, manager)
    command = await manager.order(ReplaceInstance, life_id=old, grace_s=5)
    report = await manager.report_of(command)
    assert report.outcome is ReportOutcome.SUCCEEDED
    assert manager.steps_of(command) == [
        "stopped",
        "pulled",
        "verified",
        "scanned",
        "started",
        "ready",
    ]
    assert platform.weights() == platform.weights("source")


async def test_a_bad_download_is_told_and_never_served(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """The report names the file; the instance stays stopped, its folder as it was."""
    platform.start()
    executor.start()
    old = await running_life(platform, manager)
    before = platform.weights()
    source = platform.instances_file.parent / "source" / "model.safetensors"
    source.write_bytes(platform.weights("source")[:-8] + bytes(8))
    report = await manager.report_of(await manager.order(ReplaceInstance, life_id=old, grace_s=5))
    assert report.outcome is ReportOutcome.FAILED
    assert report.reason.startswith("weights_refused: model.safetensors: SHA-256")
    assert report.life_id is None
    assert platform.weights() == before


async def test_a_missing_program_fails_the_command(
    platform: Platform, executor: ExecutorProcess, manager: Manager, tmp_path: Path
) -> None:
    """Nobody foresaw it, and the manager need not wait until the command expires."""
    for program in ("sh", "cp"):
        (tmp_path / program).symlink_to(shutil.which(program) or "")
    platform.start()
    executor.start(PATH=str(tmp_path))
    old = await running_life(platform, manager)
    report = await manager.report_of(await manager.order(ReplaceInstance, life_id=old, grace_s=5))
    assert report.outcome is ReportOutcome.FAILED
    missing = "FileNotFoundError: nice: No such file or directory"
    assert report.reason == f"step_broke: verify_weights: {missing}"
    assert report.life_id is None


async def test_damage_in_memory_is_repaired(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """Readmission keeps the checksums; the repair names what differs and reloads it."""
    platform.start()
    executor.start()
    life = await running_life(platform, manager)
    await until_serving(platform)
    await manager.report_of(await manager.order(ReadmitInstance, life_id=life))
    url = f"http://127.0.0.1:{platform.ports['engine-0']}"
    async with aiohttp.ClientSession() as session:
        await session.post(f"{url}/sim/weights", json={"damage": "nan"})
    command = await manager.order(RepairInstance, life_id=life)
    report = await manager.report_of(command)
    assert report.outcome is ReportOutcome.SUCCEEDED
    assert "1 parameters differed from the proven ones: model.embed_tokens" in report.reason
    assert manager.steps_of(command) == ["checked", "reloaded", "cache_reset"]
    assert report.life_id == life


async def test_restart(platform: Platform, executor: ExecutorProcess, manager: Manager) -> None:
    """The old life ends, a new one answers, and every step is told."""
    platform.start()
    executor.start()
    old = await running_life(platform, manager)
    command = await manager.order(RestartInstance, life_id=old, grace_s=5)
    report = await manager.report_of(command)
    assert (report.outcome, report.killed) == (ReportOutcome.SUCCEEDED, False)
    assert report.life_id not in (None, old)
    assert manager.steps_of(command) == ["stopped", "started", "ready"]
    assert report.incident_id == "i-1"


async def test_drain_then_restart(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """Condition A: confirmed out, stopped, and the restart finds nothing to stop."""
    platform.start()
    executor.start()
    life = await running_life(platform, manager)
    drain = await manager.order(DrainInstance, life_id=life, routing_version=7)
    report = await manager.report_of(drain)
    assert (report.outcome, report.life_id) == (ReportOutcome.SUCCEEDED, None)
    assert manager.steps_of(drain) == ["taken_out", "unconfirmed", "stopped"]
    await manager.observed(lambda it: not it.running)
    restart = await manager.order(RestartInstance, life_id=life)
    assert (await manager.report_of(restart)).outcome is ReportOutcome.SUCCEEDED
    assert manager.steps_of(restart) == ["started", "ready"]
    assert len(manager.lives()) == 2


async def test_a_drain_waits_for_the_agents(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """SIGTERM comes only after every agent has applied the table."""
    platform.start()
    executor._environment["GATEMESH_EXECUTOR_CONFIRM_DEADLINE_S"] = "30"
    executor.start()
    life = await running_life(platform, manager)
    command = await manager.order(DrainInstance, life_id=life, routing_version=7)
    for version in (6, 7):
        for _ in range(8):
            word = RoutingApplied(
                timestamp=datetime.now(UTC), agent_id="a-1", pool="demo", version=version
            )
            await manager.publisher.publish(word)
            await asyncio.sleep(0.1)
        if version < 7:
            assert "confirmed" not in manager.steps_of(command)
    await manager.report_of(command)
    assert manager.steps_of(command) == ["taken_out", "confirmed", "stopped"]


async def test_a_dead_engine_is_told_within_a_second(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """It exits with code 0 and nobody else says so."""
    platform.start()
    executor.start()
    await running_life(platform, manager)
    platform.supervision._call("supervisor.signalProcess", "engine-0", "KILL")
    killed_at = datetime.now(UTC)
    gone = await manager.observed(lambda it: not it.running and it.timestamp > killed_at)
    assert gone.timestamp - killed_at < timedelta(seconds=1)
    platform.supervision.start_program("engine-0")
    await manager.observed(lambda it: it.running and it.timestamp > gone.timestamp)
    assert len(manager.lives()) == 2


async def test_workers_of_a_dead_server_do_not_meet_the_next_life(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """They would hold the GPU and the port."""
    platform.start(engine_0=("--spawn-worker",))
    executor.start()
    life = await running_life(platform, manager)
    platform.supervision._call("supervisor.signalProcess", "engine-0", "KILL")
    await manager.observed(lambda it: not it.running and bool(manager.lives()))
    command = await manager.order(RestartInstance, life_id=life)
    report = await manager.report_of(command)
    assert report.outcome is ReportOutcome.SUCCEEDED
    assert len(manager.lives()) == 2


async def test_an_engine_past_its_grace_is_killed(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """One that ignores SIGTERM is back within the grace and its start."""
    platform.start(engine_0=("--ignore-sigterm", "--spawn-worker"))
    executor.start()
    life = await running_life(platform, manager)
    ready = await manager.report_of(await manager.order(RestartInstance, life_id="older"))
    assert ready.life_id == life
    command = await manager.order(RestartInstance, life_id=life, grace_s=1)
    report = await manager.report_of(command)
    assert (report.outcome, report.killed) == (ReportOutcome.SUCCEEDED, True)
    assert manager.steps_of(command) == ["killed", "started", "ready"]


async def test_a_failing_start_is_told(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """The restart budget counts it, and the text says how it ended."""
    platform.start(engine_0=("--max-num-seqs", "none"))
    executor.start()
    report = await manager.report_of(await manager.order(RestartInstance))
    assert report.outcome is ReportOutcome.FAILED
    assert report.reason.startswith("start_failed")
    assert report.life_id is None


async def test_a_start_past_its_limit_is_told_and_undone(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """What never answers does not stay behind."""
    platform.start(engine_0=("--start-delay-s", "60"))
    executor.start()
    report = await manager.report_of(await manager.order(RestartInstance, start_timeout_s=1))
    assert report.outcome is ReportOutcome.FAILED
    assert report.reason.startswith("start_timeout")
    assert report.life_id is None


async def test_a_slow_start_does_not_hold_up_another_instance(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """Each instance has its own line."""
    platform.start(engine_0=("--start-delay-s", "60"))
    executor.start()
    slow = await manager.order(RestartInstance, start_timeout_s=20)
    await manager.observed(lambda it: it.running)
    quick = await manager.order(EjectInstance, instance_id="engine-1")
    assert (await manager.report_of(quick)).outcome is ReportOutcome.SUCCEEDED
    assert "ready" not in manager.steps_of(slow)


async def test_refusals_are_told(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """Nothing is done, and the history says why."""
    platform.start()
    executor.start()
    life = await running_life(platform, manager)
    past = datetime.now(UTC) - timedelta(seconds=1)
    stale = manager.command(RestartInstance, life_id=life)
    expired = await manager.order(RestartInstance, life_id=life, expires_at=past)
    unknown = await manager.order(RestartInstance, instance_id="engine-9")
    pool = await manager.order(EjectInstance, pool="other")
    newest = await manager.order(EjectInstance)
    await manager.report_of(newest)
    await manager.publisher.publish(stale)
    reports = [await manager.report_of(it) for it in (expired, unknown, pool, stale)]
    assert {report.outcome for report in reports} == {ReportOutcome.REFUSED}
    reasons = [report.reason for report in reports]
    assert reasons == ["expired", "unknown_instance", "wrong_pool", "stale_fence"]
    assert len(manager.lives()) == 1


async def test_duplicates_change_nothing(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """The outbox may send a command more than once."""
    platform.start()
    executor.start()
    life = await running_life(platform, manager)
    command = manager.command(RestartInstance, life_id=life, grace_s=5)
    for _ in range(3):
        await manager.publisher.publish(command)
    own, *copies = await manager.reports_of(command, 3)
    assert (own.outcome, own.ends_command) == (ReportOutcome.SUCCEEDED, True)
    told = {(it.outcome, it.reason, it.ends_command) for it in copies}
    assert told == {(ReportOutcome.REFUSED, "duplicate", False)}
    assert len(manager.lives()) == 2


@pytest.mark.parametrize(
    ("action", "point"),
    [
        (action.value, point)
        for action, steps in PLAYBOOKS.items()
        for point in (*map(str, range(len(steps) + 1)), "acked")
    ],
)
async def test_killed_at_any_step(
    platform: Platform, executor: ExecutorProcess, manager: Manager, action: str, point: str
) -> None:
    """SIGKILL and a new executor: the same end state, and one restart at most."""
    platform.start()
    dying = executor.start(action, point)
    life = await running_life(platform, manager)
    if action == "repair":
        await until_serving(platform)
    command = await manager.order(KINDS[action], life_id=life, grace_s=5)
    assert await until_exit(dying) == -9
    executor.start()
    if point == "acked":
        # The report is there twice; the inbox drops the copy.
        await manager.report_of(await manager.order(ReadmitInstance))
    report = await manager.report_of(command)
    assert report.outcome is ReportOutcome.SUCCEEDED
    begins_anew = action in ("restart", "replace", "roll_back")
    if begins_anew:
        assert report.life_id not in (None, life)
        assert {"started", "ready"} <= set(manager.steps_of(command))
        await manager.observed(lambda it: it.life_id == report.life_id)
    assert report.life_id == (None if action == "drain" else report.life_id)
    assert len(manager.lives()) == (2 if begins_anew else 1)
    assert (platform.weights() == platform.weights("source")) is (action == "replace")


async def test_killed_during_a_drain(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """The stop under way is waited for, not begun again."""
    platform.start(engine_0=("--teardown-s", "2"))
    first = executor.start()
    life = await running_life(platform, manager)
    ready = await manager.report_of(await manager.order(RestartInstance, life_id="older"))
    assert ready.life_id == life
    command = await manager.order(RestartInstance, life_id=life, grace_s=20)
    async with asyncio.timeout(20):
        while platform.supervision.state_of("engine-0") != "STOPPING":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    kill_now(first)
    executor.start()
    report = await manager.report_of(command)
    assert (report.outcome, report.killed) == (ReportOutcome.SUCCEEDED, False)
    await manager.observed(lambda it: it.life_id == report.life_id)
    assert len(manager.lives()) == 2


async def test_a_platform_that_is_away_fails_the_command_near_its_expiry(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """The manager is told; until then the executor goes on trying."""
    executor.start()
    soon = datetime.now(UTC) + timedelta(seconds=10)
    command = await manager.order(RestartInstance, life_id="1@1", expires_at=soon)
    report = await manager.report_of(command)
    assert report.outcome is ReportOutcome.FAILED
    assert report.reason.startswith("backend_unavailable")
    assert report.timestamp >= soon - LAST_TRY


async def test_a_platform_that_comes_back_is_used(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """A restart of supervisord fails no command."""
    executor.start()
    command = await manager.order(RestartInstance)
    platform.start()
    report = await manager.report_of(command)
    assert report.outcome is ReportOutcome.SUCCEEDED
    assert len(manager.lives()) <= 1


async def test_a_poison_command_becomes_a_dead_letter(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """It is kept with its reason, and the next command is obeyed."""
    platform.start()
    executor.start()
    body = Message(b'{"action": "explode"}', content_type="application/json", message_id="poison")
    await manager.publisher.publish_raw(body, CONTROL, "command.v1.explode.demo.x", mandatory=True)
    assert (await manager.report_of(await manager.order(EjectInstance))).reason == ""
    queue = await (await manager.publisher.channel()).declare_queue(DEAD_LETTERS, passive=True)
    letter = await queue.get(timeout=10)
    assert letter is not None
    assert (letter.message_id, letter.headers["x-gatemesh-queue"]) == ("poison", COMMANDS.name)
    await letter.ack()


async def test_readiness_follows_the_platform(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """Not ready without supervisord, ready with it; SIGTERM ends it with code 0."""
    port = str(platform.ports["admin"])
    process = executor.start(GATEMESH_EXECUTOR_ADMIN_PORT=port)
    page = f"http://127.0.0.1:{port}/readyz"
    await until_page(page, 503, "backend")
    platform.start()
    await until_page(page, 200, "ready")
    process.terminate()
    assert await until_exit(process) == 0


async def test_wrong_settings_are_told_at_the_start(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """A person reads them; a restart would not help."""
    platform.start()
    executor._environment["GATEMESH_EXECUTOR_GRACE_S"] = "90"
    assert await until_exit(executor.start()) == 2
    executor._environment["GATEMESH_EXECUTOR_INSTANCES_FILE"] = "/nowhere.toml"
    assert await until_exit(executor.start()) == 2


async def test_a_broker_that_is_away_is_waited_for(
    platform: Platform, executor: ExecutorProcess, manager: Manager
) -> None:
    """The service never ends in a crash loop over it."""
    platform.start()
    executor._environment["GATEMESH_AMQP_URL"] = "amqp://guest:guest@127.0.0.1:1/"
    port = str(platform.ports["admin"])
    process = executor.start(GATEMESH_EXECUTOR_ADMIN_PORT=port)
    page = f"http://127.0.0.1:{port}/readyz"
    await until_page(page, 503, "broker, consumers")
    assert process.poll() is None


async def until_page(url: str, status: int, text: str) -> None:
    """Wait until a page of the admin port answers like this."""
    async with asyncio.timeout(30), aiohttp.ClientSession() as session:
        while await page_of(session, url) != (status, text):  # noqa: ASYNC110 (a page, no event)
            await asyncio.sleep(0.05)


async def page_of(session: aiohttp.ClientSession, url: str) -> tuple[int, str]:
    """Return status and text of a page; nothing while nobody listens."""
    with suppress(aiohttp.ClientError):
        async with session.get(url) as response:
            return response.status, await response.text()
    return 0, ""
