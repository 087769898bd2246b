"""One agent put together from its settings."""

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from gatemesh_agent.baseline_feed import BaselineFeed
from gatemesh_agent.baselines import Baselines
from gatemesh_agent.calibration_store import CalibrationStore
from gatemesh_agent.capture_feed import CaptureFeed
from gatemesh_agent.door import Door
from gatemesh_agent.entrance import Entrance
from gatemesh_agent.guarding import APP_ID, Guarding, build_guarding
from gatemesh_agent.http_log import server_logger
from gatemesh_agent.insight import Insight, build_insight
from gatemesh_agent.judging import Judging
from gatemesh_agent.keys import Limits
from gatemesh_agent.keys_feed import KeysFeed
from gatemesh_agent.metrics import TOKENS
from gatemesh_agent.plugins import load_gates
from gatemesh_agent.probe_asking import Asker, Pace
from gatemesh_agent.probes import Desk, Prober
from gatemesh_agent.proxy import Proxy
from gatemesh_agent.relay import Relay
from gatemesh_agent.reporting import Reporter
from gatemesh_agent.routing import PoolView, Router, bootstrap, view_of
from gatemesh_agent.routing_feed import RoutingFeed
from gatemesh_agent.routing_store import load_table
from gatemesh_agent.sending import Sender
from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.spool import Spool
from gatemesh_agent.suite import Suite, load_suite
from gatemesh_agent.telemetry import Telemetry
from gatemesh_agent.upstream import open_upstream
from gatemesh_common.clock import utc_now
from gatemesh_common.errors import SettingsError
from gatemesh_common.publisher import Publisher
from gatemesh_common.spans import NO_SPANS, Spans
from gatemesh_common.tracing import traced

SAMPLE_DEADLINE_S = 2.0
DRAIN_S = 3.0
"""Longest wait for the broker when the agent ends; the rest is sent after the next start."""


@dataclass(frozen=True, slots=True)
class Agent:
    """The parts of a running agent."""

    settings: AgentSettings
    router: Router
    telemetry: Telemetry
    sender: Sender
    guarding: Guarding
    insight: Insight
    prober: Prober
    feed: RoutingFeed
    baseline_feed: BaselineFeed
    capture_feed: CaptureFeed
    proxy: Proxy
    keys_feed: KeysFeed | None
    """None where clients show no keys."""

    async def follow_keys(self) -> None:
        """Follow the file of keys, until cancelled."""
        if self.keys_feed is not None:
            await self.keys_feed.run()
        await asyncio.Event().wait()

    async def publish_telemetry(self) -> None:
        """Hand out a telemetry window every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(self.settings.telemetry_every_s)
            self.roll_telemetry()

    def roll_telemetry(self) -> None:
        """Hand out the present telemetry window."""
        for window in self.telemetry.roll(utc_now(), self.router.in_flight):
            TOKENS.inc(window.tokens)
            self.sender.put(window)


@asynccontextmanager
async def build_agent(settings: AgentSettings, *, probes: bool = True) -> AsyncIterator[Agent]:
    """Build an agent that routes by what it knew last; nothing runs yet.

    Of several workers of one agent one `probes`: tickets are for agents, not for processes.

    Raises:
        SettingsError: the probe suite or the keys cannot be read, or a plugged-in gate is missing.
    """
    door, keys_feed = build_keys(settings)
    suite = load_suite(settings.probe_suite)
    plugs = load_gates(settings.gates, settings.gate_settings, settings.pool)
    async with AsyncExitStack() as stack:
        publisher = await stack.enter_async_context(verdict_publisher(settings))
        spool = Spool(spool_path(settings), APP_ID, settings.spool_max_messages)
        stack.callback(spool.close)
        sender = Sender(spool, publisher, time.time)
        telemetry = Telemetry(settings.id, settings.pool, utc_now())
        spans = stack.enter_context(traced(APP_ID, settings, settings.traces_share))
        reporter = Reporter(settings.id, settings.pool, telemetry, sender.put, utc_now, spans=spans)
        router = Router(random.Random(), settings.shun_s, known_view(settings))  # noqa: S311
        baselines = Baselines(settings.pool, baselines_path(settings))
        upstream = await stack.enter_async_context(open_upstream(settings))
        insight = build_insight(settings, router, upstream)
        judging = Judging(reporter, utc_now, insight.vocabulary.size, plugs, baselines)
        judging.watcher = insight.exact
        guarding = build_guarding(
            settings,
            router=router,
            upstream=upstream,
            judging=judging,
            reporter=reporter,
            publisher=await stack.enter_async_context(sample_publisher(settings)),
            naming=insight.exact,
        )
        guarding.sampling.least_share = baselines.shadow_share
        stack.push_async_callback(guarding.stop)
        insight.open()
        stack.push_async_callback(insight.stop)
        pace = probe_pace(settings)
        asker = Asker(upstream, judging, pace, suite.turns, router.in_flight.__getitem__)
        prober = build_prober(settings, suite, sender, asker)
        stack.push_async_callback(prober.stop)
        relay = Relay(router, upstream, reporter, settings.pool, settings.reroutes)
        yield Agent(
            settings=settings,
            router=router,
            telemetry=telemetry,
            sender=sender,
            guarding=guarding,
            insight=insight,
            prober=prober,
            feed=build_feed(settings, router, publisher, prober.follow if probes else seen),
            baseline_feed=BaselineFeed(settings.pool, baselines),
            capture_feed=CaptureFeed(settings.pool, guarding.captures.use),
            proxy=build_proxy(settings, guarding, relay, build_entrance(settings, door), spans),
            keys_feed=keys_feed,
        )


def seen(_view: PoolView) -> None:
    """Leave a view's tickets to another worker."""


def verdict_publisher(settings: AgentSettings) -> Publisher:
    """Return what sends verdicts, telemetry and refused requests."""
    return Publisher(settings.amqp_url, APP_ID, settings.publish_deadline_s)


def sample_publisher(settings: AgentSettings) -> Publisher:
    """Return what sends samples, by a connection of its own: they must not hold up verdicts."""
    return Publisher(settings.amqp_url, APP_ID, SAMPLE_DEADLINE_S)


def build_prober(settings: AgentSettings, suite: Suite, sender: Sender, asker: Asker) -> Prober:
    """Return what works off probe tickets."""
    return Prober(
        desk=Desk(settings.id, settings.pool, sender.put, utc_now),
        suite=suite,
        asker=asker,
        store=CalibrationStore(calibration_path(settings)),
        pace=probe_pace(settings),
    )


def probe_pace(settings: AgentSettings) -> Pace:
    """Return how probes are run."""
    return Pace(
        parallel=settings.probe_parallel,
        health_s=settings.probe_health_s,
        answer_s=settings.probe_answer_s,
        api_key=settings.probe_api_key,
        per_min=settings.probe_per_min,
        top_logprobs=settings.top_logprobs,
    )


def build_proxy(
    settings: AgentSettings,
    guarding: Guarding,
    relay: Relay,
    entrance: Entrance | None,
    spans: Spans = NO_SPANS,
) -> Proxy:
    """Return the front door."""
    return Proxy(
        guard=guarding.guard,
        relay=relay,
        hash_key=settings.hash_key,
        max_body_bytes=settings.max_body_bytes,
        stall_s=settings.client_stall_s,
        new_id=new_request_id,
        body_s=settings.body_s,
        entrance=entrance,
        spans=spans,
    )


def new_request_id() -> str:
    """Return an id like no other; nobody has to be unable to guess it, which would take longer."""
    return f"{random.getrandbits(128):032x}"


def build_entrance(settings: AgentSettings, door: Door | None) -> Entrance | None:
    """Return what turns requests away; None where nobody is."""
    closes_paths = settings.expose == "api"
    if door is None and not closes_paths:
        return None
    return Entrance(door, closes_paths, time.monotonic, settings.probe_api_key)


def build_keys(settings: AgentSettings) -> tuple[Door | None, KeysFeed | None]:
    """Return the door that knows the keys, and what brings them; neither where none are asked.

    Raises:
        SettingsError: the file of keys cannot be read.
    """
    if settings.keys_file is None:
        return None, None
    door = Door()
    defaults = Limits(settings.key_requests_per_min, settings.key_tokens_per_min)
    feed = KeysFeed(settings.keys_file, defaults, door, workers=settings.worker_count)
    feed.open()
    return door, feed


def build_feed(
    settings: AgentSettings,
    router: Router,
    publisher: Publisher,
    on_view: Callable[[PoolView], None],
) -> RoutingFeed:
    """Return what follows the routing table."""
    return RoutingFeed(
        agent_id=settings.id,
        pool=settings.pool,
        router=router,
        publisher=publisher,
        clock=utc_now,
        store=routing_path(settings),
        on_view=on_view,
        only=only_instances(settings),
    )


def only_instances(settings: AgentSettings) -> tuple[str, ...]:
    """Return the instances this agent may serve; empty means all of the pool."""
    return tuple(settings.instances) if settings.mode == "sidecar" else ()


def known_view(settings: AgentSettings) -> PoolView:
    """Return the view to begin with: the last table, else the instances of the settings."""
    table = load_table(routing_path(settings), settings.pool)
    if table is not None:
        return view_of(table, only_instances(settings))
    return bootstrap(settings.instances)


def spool_path(settings: AgentSettings) -> Path:
    """Return the file of the spool."""
    return settings.spool_dir / f"spool-{settings.id}.sqlite3"


def calibration_path(settings: AgentSettings) -> Path:
    """Return the file of what healthy instances showed that their models can answer."""
    return settings.spool_dir / f"calibration-{settings.id}.json"


def baselines_path(settings: AgentSettings) -> Path:
    """Return the file of the last baselines."""
    return settings.spool_dir / f"baselines-{settings.id}.json"


def routing_path(settings: AgentSettings) -> Path:
    """Return the file of the last routing table."""
    return settings.spool_dir / f"routing-{settings.id}.json"


@asynccontextmanager
async def listening(agent: Agent, listener: socket.socket | None = None) -> AsyncIterator[str]:
    """Serve clients while the block runs; hand out the address. Running requests may end.

    Without a `listener` of somebody else the address of the settings is bound.

    Raises:
        SettingsError: the address cannot be bound.
    """
    settings = agent.settings
    server = web.Server(
        agent.proxy.handle,
        handler_cancellation=True,
        access_log=None,
        logger=server_logger(),
        # A compressed body goes on as it came: its headers say what it is.
        auto_decompress=False,
        max_line_size=settings.max_header_bytes,
        max_field_size=settings.max_header_bytes,
    )
    runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=settings.stop_grace_s)
    await runner.setup()
    try:
        site: web.BaseSite
        if listener is None:
            site = web.TCPSite(runner, settings.host, settings.port, backlog=1024)
        else:
            site = web.SockSite(runner, listener, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            raise SettingsError(
                f"{settings.host}:{settings.port} cannot be bound ({error.strerror}); set another "
                "GATEMESH_AGENT_PORT or GATEMESH_AGENT_HOST"
            ) from error
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
