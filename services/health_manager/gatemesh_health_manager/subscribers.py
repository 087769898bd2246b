"""What the manager reads beside verdicts; the acknowledgement follows the commit."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from faststream import AckPolicy
from faststream.rabbit import RabbitRouter
from faststream.rabbit.annotations import RabbitMessage as Received

from gatemesh_common.broker import (
    CAPTURES,
    OBSERVATIONS,
    PROOFS,
    REJECTED,
    REPORTS,
    REQUESTS,
    STEPS,
    TELEMETRY,
    TRIALS,
    VERDICTS,
    WorkQueue,
    topic,
    work_queue,
)
from gatemesh_common.consuming import retry_passing_faults
from gatemesh_common.messages import (
    ActionRequest,
    Capture,
    CommandReport,
    InstanceObserved,
    Message,
    RequestRejected,
    StepFinished,
    TelemetryWindow,
    TrialRequest,
)
from gatemesh_health_manager.batcher import Batcher
from gatemesh_health_manager.store import Store

RECORDED = (STEPS, TELEMETRY, REJECTED, CAPTURES)
"""Queues whose messages are only written down."""
QUEUES = (VERDICTS, PROOFS, REPORTS, OBSERVATIONS, REQUESTS, TRIALS, *RECORDED)
ACK_AFTER_COMMIT = AckPolicy.REJECT_ON_ERROR
Handler = Callable[..., Awaitable[None]]


def read(router: RabbitRouter, queue: WorkQueue) -> Callable[[Handler], object]:
    """Return what subscribes a handler to a queue; nobody is answered, whatever he asks for."""
    return router.subscriber(
        work_queue(queue), topic(queue.exchange), ack_policy=ACK_AFTER_COMMIT, no_reply=True
    )


def sender_of(message: Received) -> str | None:
    """Return the user who sent a message; the broker lets nobody name another than himself."""
    return message.raw_message.user_id or None


def record_batcher(store: Store, queue: WorkQueue) -> Batcher[Message]:
    """Return a batcher that writes messages of one queue down."""
    return Batcher(partial(store.apply_records, queue.name))


def event_router(store: Store) -> RabbitRouter:
    """Follow reports, observations and operators' requests, one transaction each."""
    router = RabbitRouter()

    async def handle(apply: Handler, queue: str, *event: Any) -> None:
        await retry_passing_faults(lambda: apply(queue, *event))

    @read(router, REPORTS)
    async def on_report(report: CommandReport) -> None:
        await handle(store.apply_event, REPORTS.name, report)

    @read(router, OBSERVATIONS)
    async def on_observation(seen: InstanceObserved) -> None:
        await handle(store.apply_event, OBSERVATIONS.name, seen)

    @read(router, REQUESTS)
    async def on_request(request: ActionRequest, message: Received) -> None:
        await handle(store.apply_request, REQUESTS.name, request, sender_of(message))

    @read(router, TRIALS)
    async def on_trial(request: TrialRequest, message: Received) -> None:
        await handle(store.apply_trial, TRIALS.name, request, sender_of(message))

    return router


def record_router(
    steps: Batcher[Message],
    telemetry: Batcher[Message],
    rejected: Batcher[Message],
    captures: Batcher[Message],
) -> RabbitRouter:
    """Write down steps, telemetry windows, refused client requests and captures."""
    router = RabbitRouter()

    @read(router, STEPS)
    async def on_step(step: StepFinished) -> None:
        await steps.submit(step)

    @read(router, TELEMETRY)
    async def on_window(window: TelemetryWindow) -> None:
        await telemetry.submit(window)

    @read(router, REJECTED)
    async def on_rejected(request: RequestRejected) -> None:
        await rejected.submit(request)

    @read(router, CAPTURES)
    async def on_capture(capture: Capture) -> None:
        await captures.submit(capture)

    return router
