"""One trace from a client's request to the restart that it causes, over a real broker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial

import pytest
from prometheus_client import REGISTRY
from tests.spans import TRACE, Recorder

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.reporting import Life, Origin, Reporter
from gatemesh_agent.telemetry import Telemetry
from gatemesh_common.broker import COMMANDS, REPORTS, VERDICTS
from gatemesh_common.clock import utc_now
from gatemesh_common.consuming import consumer_broker
from gatemesh_common.database import open_database
from gatemesh_common.messages import CheckLevel, Message, Outcome, Reason
from gatemesh_common.outbox import Relay
from gatemesh_common.publisher import Publisher
from gatemesh_executor.backends.fake import FakeBackend
from gatemesh_executor.balancers.fake import FakeRotation
from gatemesh_executor.health import Health
from gatemesh_executor.instances import Instance
from gatemesh_executor.jobs import Tools
from gatemesh_executor.obeying import Executor
from gatemesh_executor.receiving import Receiver
from gatemesh_executor.subscribers import command_router
from gatemesh_executor.trust import Trust
from gatemesh_health_manager.intake import Intake, Reader
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.store import Store
from gatemesh_health_manager.subscribers import event_router

from .conftest import Site

pytestmark = pytest.mark.integration

NAMES = ("engine-0", "engine-1")
VICTIM = NAMES[0]
PROOF = Judgement(CheckLevel.L3, Outcome.FAILED, Reason.NAN_LOGITS, hard=True)


class Ready:
    """Every engine answers."""

    async def look(self, base_url: str) -> Health:
        """Say so."""
        return Health.READY


@pytest.fixture
def recorder() -> Recorder:
    """Return where all services tell their spans."""
    return Recorder()


@pytest.fixture
async def running(site: Site, recorder: Recorder) -> AsyncIterator[FakeBackend]:
    """Run a manager and an executor in this process; return the engines."""
    async with AsyncExitStack() as stack:
        publisher = await stack.enter_async_context(Publisher(site.amqp_url, "test"))
        await manage(site, recorder, publisher, stack)
        yield await obey(site, recorder, publisher, stack)


async def manage(
    site: Site, recorder: Recorder, publisher: Publisher, stack: AsyncExitStack
) -> None:
    """Run a manager."""
    engine = open_database(site.database_url)
    stack.push_async_callback(engine.dispose)
    relay = Relay(engine, publisher, "health_manager", utc_now)
    spans = recorder.spans("health_manager")
    store = Store(engine, Policy(), utc_now, relay.hand_over, spans=spans)
    await store.register_policy()
    relaying = asyncio.create_task(relay.run())
    stack.callback(relaying.cancel)
    apply = partial(store.apply_verdicts, VERDICTS.name)
    stack.push_async_callback(Reader(Intake(site.amqp_url, VERDICTS.name, apply, publisher)).end)
    broker = consumer_broker(site.amqp_url, "health_manager", publisher)
    broker.include_router(event_router(store))
    await broker.start()
    stack.push_async_callback(broker.stop)


async def obey(
    site: Site, recorder: Recorder, publisher: Publisher, stack: AsyncExitStack
) -> FakeBackend:
    """Run an executor over engines that exist as records."""
    instances = {
        name: Instance(instance_id=name, base_url="http://127.0.0.1:1", program=name)
        for name in NAMES
    }
    backend = FakeBackend(instances, utc_now)
    tools = Tools(backend, FakeRotation(), Ready())
    spans = recorder.spans("executor")
    executor = Executor(instances, tools, publisher, utc_now, spans=spans)
    broker = consumer_broker(site.amqp_url, "executor", publisher)
    broker.include_router(command_router(Receiver(Trust(), executor).receive))
    await broker.start()
    stack.push_async_callback(broker.stop)
    return backend


async def ask_and_find_proof(site: Site, recorder: Recorder) -> None:
    """Do what an agent does with a request whose answer is proven bad."""
    spans, put = recorder.spans("agent", 0.0), list[Message]()
    telemetry = Telemetry("agent-0", "default", utc_now())
    reporter = Reporter("agent-0", "default", telemetry, put.append, utc_now, spans=spans)
    span = spans.begin("request /v1/chat/completions", TRACE, {"gatemesh.request_id": "R1"})
    life = Life(VICTIM, 1, None, numbered=True)
    origin = Origin("R1", span.traceparent)
    reporter.publish(reporter.verdict(PROOF, 0, origin, life, {}))
    span.end(status=200)
    for message in put:
        await site.publisher.publish(message)


async def test_a_restart_is_found_from_the_request_that_caused_it(
    site: Site, recorder: Recorder, running: FakeBackend
) -> None:
    """Request, verdict, decision, commands and steps: one trace, each under what caused it."""
    await site.bring_up(*NAMES)
    await ask_and_find_proof(site, recorder)
    await site.until_value(
        "SELECT ticket_purpose FROM instances WHERE instance_id = 'engine-0'", "confirm"
    )
    await site.answer_probes(VICTIM, "failed")
    await site.until_value(
        "SELECT count(*) FROM command_reports r JOIN commands USING (command_id)"
        " WHERE action = 'restart' AND r.outcome = 'succeeded'",
        1,
    )
    names = ("request /v1/chat/completions", "verdict L3 failed", "command restart")
    request, verdict, restart = (recorder.named(name) for name in names)
    ready = recorder.named("step ready")
    assert request.parent_id == TRACE[36:52]
    assert verdict.parent_id == request.span_id
    assert restart.parent_id == verdict.span_id
    assert ready.parent_id == restart.span_id
    decided = {one.name for one in recorder.told if one.parent_id == verdict.span_id}
    assert {"decide eject", "command eject", "decide restart", "command restart"} <= decided
    assert {one.trace_id for one in (request, verdict, restart, ready)} == {TRACE[3:35]}
    # By SQL, too: who looks at the incident finds the trace.
    stored = site.value("SELECT traceparent FROM incidents_v1")
    assert stored == f"00-{verdict.trace_id}-{verdict.span_id}-01"
    query = "SELECT traceparent FROM verdicts_v1 WHERE hard"
    assert site.rows(query) == [(stored,)]
    ages = REGISTRY.get_sample_value
    for queue in (COMMANDS.name, REPORTS.name):
        assert ages("gatemesh_queue_age_seconds_count", {"queue": queue})
