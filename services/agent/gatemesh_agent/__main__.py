"""Composition root of the agent: `python -m gatemesh_agent`."""

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import uvloop

from gatemesh_agent.guarding import APP_ID
from gatemesh_agent.service import DRAIN_S, Agent, build_agent, listening
from gatemesh_agent.settings import AgentSettings
from gatemesh_common.admin import Readiness, start_admin_server
from gatemesh_common.errors import SettingsError
from gatemesh_common.log import configure_logging
from gatemesh_common.publisher import Publisher
from gatemesh_common.running import EXIT_SETTINGS, declare_when_up, stop_requested
from gatemesh_common.settings import load_settings

log = logging.getLogger(__name__)

AGAIN_S = 1.0
COLLECT_AFTER = (50_000, 20, 20)


async def serve(settings: AgentSettings) -> None:
    """Serve until told to stop, then let running requests end.

    Raises:
        SettingsError: a port is taken, or the probe suite cannot be read.
    """
    stop = stop_requested()
    readiness = Readiness("listening")
    start_admin_server(settings.admin_host, settings.admin_port, readiness)
    async with build_agent(settings) as agent, beside(agent), listening(agent) as address:
        agent.feed.announce()
        readiness.set("listening", met=True)
        log.info("agent_ready", extra={"address": address, "agent_id": settings.id})
        await stop.wait()
        readiness.set("listening", met=False)
    log.info("agent_stopped", extra={"agent_id": settings.id})


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


def tune_collector() -> None:
    """Collect garbage less often: an event's JSON makes hundreds of objects, and no cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def main() -> int:
    """Read the settings, run, and return the exit code."""
    try:
        settings = load_settings(AgentSettings)
        configure_logging(APP_ID, settings.log_level)
        # A broker that is away would be a line per try; our own events say it.
        logging.getLogger("aiormq.connection").setLevel(logging.CRITICAL)
        tune_collector()
        uvloop.run(serve(settings))
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS
    return 0


if __name__ == "__main__":
    sys.exit(main())
