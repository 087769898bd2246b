"""What may happen to the executor, its commands and the engines it acts on."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import aio_pika
from aio_pika.abc import AbstractIncomingMessage, HeadersType
from tests.faults.acting import (
    VICTIM,
    absent,
    accuse,
    ask_for,
    engine_of,
    has_killed_itself,
    is_repaired,
    running,
    with_whole_budget,
)
from tests.faults.scenario import Event, Play

from gatemesh_common.clock import utc_now
from gatemesh_common.messages import CONTROL, ReadmitInstance
from gatemesh_common.publisher import Publisher, envelope
from gatemesh_common.signing import SigningKey

EXECUTOR = "executor"
DYING = Path(__file__).parents[1] / "integration" / EXECUTOR / "dying_executor.py"
DRAIN_POINTS = {
    "0": "before it takes out",
    "1": "before the confirmation",
    "2": "before SIGTERM",
    "3": "before the report",
    "acked": "before the acknowledgement",
}
"""Where an executor dies in a drain."""
REFUSALS = {"unsigned", "unknown_key", "bad_signature", "duplicate", "expired", "stale_fence"}
RESTARTS = 3
HEARING_S = 90.0
LOOK_S = 3.0
"""After so long the manager knows of a death, or of a life that began."""


def kill_in_a_drain(point: str) -> Event:
    """Return the event that the executor dies at one point of a drain."""

    async def event(it: Play) -> None:
        async with absent(it, EXECUTOR):
            with running(it, EXECUTOR, str(DYING), "drain", point) as dying:
                await accuse(it)
                await has_killed_itself(dying)
        await is_repaired(it)

    return event


async def forge_commands(it: Play) -> None:
    """A stranger at the broker sends what he has heard, and what he has made up."""
    async with (
        heard_commands(it) as heard,
        Publisher(it.site.fleet.plan.addresses.amqp_url, "x") as publisher,
    ):
        await ask_for(it, "eject", VICTIM)
        real = await asyncio.wait_for(heard.get(), HEARING_S)
        await it.site.fleet.settled()
        for message in forgeries(it, real):
            key = str(real.routing_key)
            await publisher.publish_raw(message, CONTROL, key, mandatory=True)
    query = "SELECT DISTINCT reason FROM refused_commands_v1 WHERE received_at >= %(since)s"

    def refused() -> set[str]:
        return {str(row["reason"]) for row in it.site.fleet.rows(query, since=it.since)}

    await it.reach(lambda: refused() >= REFUSALS, "every refusal in the audit view")


@asynccontextmanager
async def heard_commands(it: Play) -> AsyncIterator["asyncio.Queue[AbstractIncomingMessage]"]:
    """Listen for the victim to be put back."""
    heard: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
    async with Publisher(it.site.fleet.plan.addresses.amqp_url, "listener") as publisher:
        channel = await publisher.channel()
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(CONTROL, f"command.v1.readmit.*.{VICTIM}")
        await queue.consume(heard.put, no_ack=True)
        yield heard


def forgeries(it: Play, real: AbstractIncomingMessage) -> list[aio_pika.Message]:
    """Return copies and forgeries of a real command."""
    key = SigningKey.from_pem(it.site.plan.folder.signing_key_file.read_text())
    command = ReadmitInstance.model_validate_json(real.body)
    signature = {name: real.headers[name] for name in ("x-signature", "x-key-id")}
    expired = {"expires_at": utc_now() - timedelta(seconds=1)}
    fresh = {"expires_at": utc_now() + timedelta(seconds=60)}
    later = {"fence": command.fence + 1000}
    signed = [
        command.model_copy(update={"message_id": "late", **expired, **later}),
        command.model_copy(update={"message_id": "stale", **fresh, "fence": 1}),
    ]
    return [
        signed_by(None, command.model_copy(update=later)),
        signed_by(SigningKey.from_seed(bytes(32)), command.model_copy(update=later)),
        with_headers(command.model_copy(update=later), signature),
        aio_pika.Message(real.body, headers=real.headers),
        *(signed_by(key, each) for each in signed),
    ]


def signed_by(key: SigningKey | None, command: ReadmitInstance) -> aio_pika.Message:
    """Return a command in its envelope, signed where there is a key."""
    message = envelope(command, "stranger")
    if key is not None:
        message.headers |= key.sign(message.body)
    return message


def with_headers(command: ReadmitInstance, headers: HeadersType) -> aio_pika.Message:
    """Return a command with the signature of another."""
    message = envelope(command, "stranger")
    message.headers |= headers
    return message


async def ignore_sigterm(it: Play) -> None:
    """An engine does not leave when it is asked to, and is killed after the grace."""
    supervision = it.site.fleet.stack.supervision
    engine = engine_of(it, VICTIM)
    deaf = replace(engine.program, argv=(*engine.program.argv, "--ignore-sigterm"))
    await asyncio.to_thread(supervision.add, [deaf])
    await is_repaired(it)
    before = utc_now()
    await accuse(it)
    await it.site.fleet.repaired(VICTIM, before)
    killed = """SELECT count(*) FROM commands_v1 WHERE issued_at >= %(before)s
        AND action = 'drain' AND killed"""
    assert it.count(killed, before=before) == 1
    before = utc_now()
    os.killpg(it.site.fleet.pid_of(VICTIM), signal.SIGKILL)
    await asyncio.to_thread(supervision.add, [engine.program])
    await it.reach(lambda: it.site.fleet.pid_of(VICTIM) > 0, "the life after the change runs")
    await asyncio.sleep(LOOK_S)
    await it.site.fleet.repaired(VICTIM, before)


async def die_at_every_start(it: Play) -> None:
    """An engine dies whenever it is started: after the budget a person must look."""
    fleet = it.site.fleet
    await with_whole_budget(it)
    killing = asyncio.create_task(keep_killing(it))
    try:
        await it.reach(
            lambda: fleet.state_of(VICTIM) == "quarantined", "a person is asked for", 90.0
        )
    finally:
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)
    assert it.commands(VICTIM).count("restart") <= RESTARTS
    assert it.site.fleet.count("SELECT count(*) FROM instance_health_v1 WHERE in_rotation") == 2
    await ask_for(it, "release", VICTIM)
    await fleet.settled()


async def keep_killing(it: Play) -> None:
    """Kill each life of the victim as soon as it runs."""
    while True:
        pid = await asyncio.to_thread(it.site.fleet.pid_of, VICTIM)
        if pid:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        await asyncio.sleep(0.2)


async def spoil_everybody(it: Play) -> None:
    """Every engine emits garbage at once: each is mended in turn, and enough stay in rotation."""
    fleet = it.site.fleet
    least = len(it.site.plan.engines)
    for engine in it.site.plan.engines:
        it.site.spoil(engine.instance_id, "nan")
    # Those that must wait their turn may fail their suites meanwhile, and are replaced for that.
    lives = """SELECT count(DISTINCT instance_id) FROM commands_v1 WHERE issued_at >= %(since)s
        AND action IN ('restart', 'replace')"""
    serving = "SELECT count(*) FROM instance_health_v1 WHERE in_rotation"
    braked = "SELECT count(*) FROM pools_v1 WHERE braked"
    end_s = asyncio.get_running_loop().time() + 240
    resets = 0
    while it.count(lives) < len(it.site.plan.engines) or not fleet.is_settled():
        assert asyncio.get_running_loop().time() < end_s, fleet.unsettled()
        least = min(least, fleet.count(serving))
        if fleet.count(braked):
            await ask_for(it, "reset_brake", backlog="replay")
            resets += 1
        await asyncio.sleep(0.1)
    it.facts["least_serving"] = least
    it.facts["brake_fell"] = resets
