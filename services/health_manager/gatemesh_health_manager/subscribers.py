"""What the manager reads from the broker; the acknowledgement follows the commit."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from faststream import AckPolicy
from faststream.rabbit import RabbitRouter

from gatemesh_common.broker import (
    OBSERVATIONS,
    REJECTED,
    REPORTS,
    REQUESTS,
    STEPS,
    TELEMETRY,
    VERDICTS,
    WorkQueue,
    topic,
    work_queue,
)
from gatemesh_common.consuming import retry_passing_faults
from gatemesh_common.messages import (
    ActionRequest,
    CommandReport,
    InstanceObserved,
    Message,
    RequestRejected,
    StepFinished,
    TelemetryWindow,
    Verdict,
)
from gatemesh_health_manager.batcher import Batcher
from gatemesh_health_manager.store import Store

QUEUES = (VERDICTS, REPORTS, OBSERVATIONS, REQUESTS, STEPS, TELEMETRY, REJECTED)
ACK_AFTER_COMMIT = AckPolicy.REJECT_ON_ERROR


def verdict_batcher(store: Store) -> Batcher[Verdict]:
    """Return the batcher that stores verdicts and decides about them."""
    return Batcher(partial(store.apply_verdicts, VERDICTS.name))


def record_batcher(store: Store, queue: WorkQueue) -> Batcher[Message]:
    """Return a batcher that writes messages of one queue down."""
    return Batcher(partial(store.apply_records, queue.name))


def verdict_router(batcher: Batcher[Verdict]) -> RabbitRouter:
    """Score each verdict once."""
    router = RabbitRouter()

    @router.subscriber(work_queue(VERDICTS), topic(VERDICTS.exchange), ack_policy=ACK_AFTER_COMMIT)
    async def on_verdict(verdict: Verdict) -> None:
        await batcher.submit(verdict)

    return router


def event_router(store: Store) -> RabbitRouter:
    """Follow reports, observations and operators' requests, one transaction each."""
    router = RabbitRouter()

    async def handle(apply: Callable[[str, Any], Awaitable[None]], queue: str, event: Any) -> None:
        await retry_passing_faults(lambda: apply(queue, event))

    @router.subscriber(work_queue(REPORTS), topic(REPORTS.exchange), ack_policy=ACK_AFTER_COMMIT)
    async def on_report(report: CommandReport) -> None:
        await handle(store.apply_event, REPORTS.name, report)

    @router.subscriber(
        work_queue(OBSERVATIONS), topic(OBSERVATIONS.exchange), ack_policy=ACK_AFTER_COMMIT
    )
    async def on_observation(seen: InstanceObserved) -> None:
        await handle(store.apply_event, OBSERVATIONS.name, seen)

    @router.subscriber(work_queue(REQUESTS), topic(REQUESTS.exchange), ack_policy=ACK_AFTER_COMMIT)
    async def on_request(request: ActionRequest) -> None:
        await handle(store.apply_request, REQUESTS.name, request)

    return router


def record_router(
    steps: Batcher[Message], telemetry: Batcher[Message], rejected: Batcher[Message]
) -> RabbitRouter:
    """Write down steps, telemetry windows and refused client requests."""
    router = RabbitRouter()

    @router.subscriber(work_queue(STEPS), topic(STEPS.exchange), ack_policy=ACK_AFTER_COMMIT)
    async def on_step(step: StepFinished) -> None:
        await steps.submit(step)

    @router.subscriber(
        work_queue(TELEMETRY), topic(TELEMETRY.exchange), ack_policy=ACK_AFTER_COMMIT
    )
    async def on_window(window: TelemetryWindow) -> None:
        await telemetry.submit(window)

    @router.subscriber(work_queue(REJECTED), topic(REJECTED.exchange), ack_policy=ACK_AFTER_COMMIT)
    async def on_rejected(request: RequestRejected) -> None:
        await rejected.submit(request)

    return router
