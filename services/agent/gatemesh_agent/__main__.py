"""Composition root of the agent: `python -m gatemesh_agent`."""

import asyncio
import logging
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import uvloop

from gatemesh_agent.guarding import APP_ID
from gatemesh_agent.service import DRAIN_S, Agent, build_agent, listening
from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.worker_link import Link, worker_in
from gatemesh_agent.worker_share import Worker, settings_of
from gatemesh_agent.workers import supervise
from gatemesh_common.admin import Readiness, start_admin_server
from gatemesh_common.collecting import collect_rarely
from gatemesh_common.errors import SettingsError
from gatemesh_common.log import configure_logging
from gatemesh_common.publisher import Publisher
from gatemesh_common.running import EXIT_SETTINGS, declare_when_up, first_to_end, stop_requested
from gatemesh_common.settings import load_settings

log = logging.getLogger(__name__)

AGAIN_S = 1.0
LEAVING_S = 10.0
"""For closing connections, beyond what running requests and unsent events may take."""


async def serve(settings: AgentSettings) -> None:
    """Serve until told to stop, then let running requests end.

    Raises:
        SettingsError: a port is taken, or the probe suite cannot be read.
    """
    stop = stop_requested(longest_stop_s(settings))
    readiness = Readiness("listening")
    start_admin_server(settings.admin_host, settings.admin_port, readiness)
    async with build_agent(settings) as agent, beside(agent), listening(agent) as address:
        agent.feed.announce()
        readiness.set("listening", met=True)
        log.info("agent_ready", extra={"address": address, "agent_id": settings.id})
        await stop.wait()
        readiness.set("listening", met=False)
    log.info("agent_stopped", extra={"agent_id": settings.id})


async def work(settings: AgentSettings, worker: Worker) -> None:
    """Serve as one of several workers until told to stop, or until the supervisor is gone.

    Raises:
        SettingsError: the probe suite or the keys cannot be read.
    """
    stop = stop_requested(longest_stop_s(settings))
    own = settings_of(settings, worker.index)
    listener = socket.socket(fileno=worker.listen_fd)
    readiness = Readiness("listening")
    admin = start_admin_server(own.admin_host, own.admin_port, readiness)
    link = await Link.open(worker)
    async with (
        build_agent(own, probes=worker.index == 0) as agent,
        beside(agent),
        listening(agent, listener),
    ):
        agent.feed.announce()
        readiness.set("listening", met=True)
        await link.ready(admin.server_port)
        log.info("worker_ready", extra={"agent_id": own.id})
        await first_to_end(stop.wait(), link.lost())
        readiness.set("listening", met=False)
    link.close()
    log.info("worker_stopped", extra={"agent_id": own.id})


@asynccontextmanager
async def beside(agent: Agent) -> AsyncIterator[None]:
    """Run what goes on beside the traffic; at the end send what the broker takes at once."""
    amqp_url = agent.settings.amqp_url
    tasks = [
        asyncio.create_task(keep_running(agent.sender.run)),
        asyncio.create_task(keep_running(agent.guarding.samples.run)),
        asyncio.create_task(keep_running(agent.guarding.captures.run)),
        asyncio.create_task(keep_running(agent.guarding.captured.run)),
        asyncio.create_task(keep_running(agent.guarding.stalls.run)),
        asyncio.create_task(keep_running(agent.publish_telemetry)),
        asyncio.create_task(keep_running(lambda: agent.feed.run(amqp_url))),
        asyncio.create_task(keep_running(lambda: agent.baseline_feed.run(amqp_url))),
        asyncio.create_task(keep_running(lambda: agent.capture_feed.run(amqp_url))),
        asyncio.create_task(keep_running(agent.follow_keys)),
        asyncio.create_task(declare(amqp_url)),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        agent.insight.exact.settle_all()
        await agent.guarding.stop()
        agent.roll_telemetry()
        await agent.sender.drain(DRAIN_S)


def longest_stop_s(settings: AgentSettings) -> float:
    """Return after how long a process that was told to stop ends, whatever it still waits for.

    What was not sent lies in the spool.
    """
    return settings.stop_grace_s + DRAIN_S + LEAVING_S


async def keep_running(operation: Callable[[], Awaitable[None]]) -> None:
    """Run something for ever; traffic goes on even when it fails in a way nobody thought of."""
    while True:
        try:
            await operation()
        except Exception:
            log.exception("task_failed")
        await asyncio.sleep(AGAIN_S)


async def declare(amqp_url: str) -> None:
    """Declare the topology as soon as the broker is there, so that nothing goes into the void."""
    async with Publisher(amqp_url, APP_ID) as publisher:
        await declare_when_up(publisher)


def running(settings: AgentSettings, worker: Worker | None) -> Coroutine[Any, Any, None]:
    """Return what this process is to do: serve, be one of several that do, or supervise them."""
    if worker is not None:
        return work(settings, worker)
    return serve(settings) if settings.worker_count == 1 else supervise(settings)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the settings, run, and return the exit code."""
    try:
        settings = load_settings(AgentSettings)
        configure_logging(APP_ID, settings.log_level)
        # A broker that is away would be a line per try; our own events say it.
        logging.getLogger("aiormq.connection").setLevel(logging.CRITICAL)
        worker = worker_in(sys.argv[1:] if arguments is None else arguments)
        collect_rarely()
        uvloop.run(running(settings, worker))
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS
    return 0


if __name__ == "__main__":
    sys.exit(main())
