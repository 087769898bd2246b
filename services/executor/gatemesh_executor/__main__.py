"""Composition root of the executor: `python -m gatemesh_executor`."""

import asyncio
import logging
import sys
from uuid import uuid4

from faststream.rabbit import RabbitBroker

from gatemesh_common.admin import Readiness, start_admin_server
from gatemesh_common.broker import COMMANDS
from gatemesh_common.clock import utc_now
from gatemesh_common.consuming import consumer_broker, retry_passing_faults, watch_consumers
from gatemesh_common.errors import SettingsError
from gatemesh_common.hearing import hearing_router
from gatemesh_common.log import configure_logging
from gatemesh_common.messages import RoutingApplied, RoutingTable
from gatemesh_common.publisher import Publisher
from gatemesh_common.running import (
    EXIT_PART_LOST,
    EXIT_SETTINGS,
    declare_when_up,
    first_to_end,
    stop_requested,
    with_broker,
)
from gatemesh_common.settings import load_settings
from gatemesh_common.spans import NO_SPANS, Spans
from gatemesh_common.tracing import traced
from gatemesh_executor.backends.base import EngineBackend, ProgramMissingError
from gatemesh_executor.balancers.agents import AgentRouting
from gatemesh_executor.balancers.rotation import FleetRotation, fleet_rotation
from gatemesh_executor.health import HttpHealth
from gatemesh_executor.instances import Fleet
from gatemesh_executor.jobs import Limits, Tools
from gatemesh_executor.obeying import Executor
from gatemesh_executor.observer import Observer, Rhythm
from gatemesh_executor.pace import Pace
from gatemesh_executor.platforms import Platform, listed_fleet, opened_platform
from gatemesh_executor.receiving import Receiver
from gatemesh_executor.repairing import HttpRepair
from gatemesh_executor.settings import ExecutorSettings
from gatemesh_executor.subscribers import command_router
from gatemesh_executor.trust import load_trust
from gatemesh_executor.weights.checksums import Checksums

log = logging.getLogger(__name__)

APP_ID = "executor"
PROGRAMS_DEADLINE_S = 10.0
"""Longest wait for programs that supervisord does not know yet, as while a stack starts."""


async def serve(settings: ExecutorSettings, fleet: Fleet) -> int:
    """Run until told to stop; return the exit code."""
    stop = stop_requested()
    readiness = Readiness("broker", "backend", "consumers")
    start_admin_server(settings.admin_host, settings.admin_port, readiness)

    async def stop_in_order() -> None:
        await stop.wait()
        readiness.set("consumers", met=False)

    with traced(APP_ID, settings) as spans:
        await first_to_end(run(settings, fleet, readiness, spans), stop_in_order())
    log.info("executor_stopped", extra={"asked": stop.is_set()})
    return 0 if stop.is_set() else EXIT_PART_LOST


async def run(
    settings: ExecutorSettings, fleet: Fleet, readiness: Readiness, spans: Spans = NO_SPANS
) -> None:
    """Build everything and run it; returns when the consumer of commands is lost."""
    trust = load_trust(settings)
    pace = Pace()
    async with (
        Publisher(settings.amqp_url, APP_ID, settings.publish_deadline_s) as publisher,
        opened_platform(settings, fleet.instances, pace) as platform,
        HttpHealth() as health,
        HttpRepair() as repair,
    ):
        agents = AgentRouting(settings.agent_silence_s, pace)
        rotation = fleet_rotation(fleet, agents, pace, utc_now)
        limits = Limits(
            settings.confirm_deadline_s, settings.refused_grace_s, settings.cache_reset_s
        )
        checksums = Checksums(settings.state_dir)
        tools = Tools(
            *(platform.backend, platform.balance(rotation), health, limits, pace),
            repair=repair,
            checksums=checksums,
            versions=platform.versions,
            dumper=platform.dumper,
            puller=platform.puller,
        )
        receiver = Receiver(trust, Executor(platform.instances, tools, publisher, utc_now, spans))
        observer = build_observer(settings, platform, publisher, readiness, pace)

        async def obey() -> None:
            await platform.known()
            log.info("executor_started", extra={"instances": len(platform.instances)})
            await consume(settings, publisher, receiver, rotation, readiness)

        await first_to_end(
            platform.follow(),
            watch_processes(platform.backend, observer),
            obey(),
            rotation.run(),
        )


def build_observer(
    settings: ExecutorSettings,
    platform: Platform,
    publisher: Publisher,
    readiness: Readiness,
    pace: Pace,
) -> Observer:
    """Return what publishes the platform's observations."""
    rhythm = Rhythm(settings.poll_s, settings.repeat_s)
    return Observer(
        platform.backend, platform.instances, publisher, utc_now, readiness, rhythm, pace
    )


async def watch_processes(backend: EngineBackend, observer: Observer) -> None:
    """Check the backend's configuration as soon as it answers, then observe for ever."""
    await verify(backend, Pace())
    await observer.run()


async def verify(backend: EngineBackend, pace: Pace) -> None:
    """Check the configuration once the backend answers; a program may be added a little later.

    Raises:
        SettingsError: the backend cannot be used as it is.
    """
    deadline: float | None = None
    while True:
        try:
            return await retry_passing_faults(backend.verify)
        except ProgramMissingError:
            deadline = deadline or pace.now() + PROGRAMS_DEADLINE_S
            if pace.now() >= deadline:
                raise
        await pace.sleep(0.5)


async def consume(
    settings: ExecutorSettings,
    publisher: Publisher,
    receiver: Receiver,
    rotation: FleetRotation,
    readiness: Readiness,
) -> None:
    """Obey commands until their consumer is lost."""
    await declare_when_up(publisher)
    broker = await subscribe(settings, publisher, receiver, rotation)
    readiness.set("consumers", met=True)
    readiness.set("broker", met=True)
    try:
        await watch_consumers(publisher, (COMMANDS,))
    finally:
        receiver.abandon()
        await broker.stop()


async def subscribe(
    settings: ExecutorSettings, publisher: Publisher, receiver: Receiver, rotation: FleetRotation
) -> RabbitBroker:
    """Return a broker whose subscribers run, as soon as there is one to connect to."""

    async def start() -> RabbitBroker:
        process_id = uuid4().hex[:8]
        broker = consumer_broker(settings.amqp_url, APP_ID, publisher, settings.prefetch)
        broker.include_router(command_router(receiver.receive))
        broker.include_router(
            hearing_router(RoutingApplied, rotation.agents.hear, f"executor.applied.{process_id}")
        )
        if rotation.keepers:
            broker.include_router(
                hearing_router(RoutingTable, rotation.hear, f"executor.routing.{process_id}")
            )
        await broker.start()
        return broker

    broker = await with_broker(start)
    rotation.agents.listen()
    return broker


def main() -> int:
    """Read the settings, run, and return the exit code."""
    try:
        settings = load_settings(ExecutorSettings)
        fleet = listed_fleet(settings)
        configure_logging(APP_ID, settings.log_level)
        return asyncio.run(serve(settings, fleet))
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS


if __name__ == "__main__":
    sys.exit(main())
