"""What the shadow reads from the broker."""

from collections.abc import Awaitable, Callable

from faststream import AckPolicy
from faststream.rabbit import RabbitRouter

from gatemesh_common.broker import SAMPLES, broadcast_queue, topic, work_queue
from gatemesh_common.messages import EVENTS, SHADOW, CaptureTerms, RoutingTable, ShadowSample


def sample_router(judge: Callable[[ShadowSample], Awaitable[None]]) -> RabbitRouter:
    """Judge each sample. The ack follows the published verdicts, so a crash redelivers."""
    router = RabbitRouter()

    @router.subscriber(
        work_queue(SAMPLES),
        topic(SHADOW),
        ack_policy=AckPolicy.REJECT_ON_ERROR,
        no_reply=True,
    )
    async def on_sample(sample: ShadowSample) -> None:
        await judge(sample)

    return router


def routing_router(hear: Callable[[RoutingTable], None], process_id: str) -> RabbitRouter:
    """Hear which instances there are; repeated by the manager, so nothing is kept."""
    router = RabbitRouter()
    queue = broadcast_queue(f"shadow.routing.{process_id}", "routing.v1.#")

    @router.subscriber(queue, topic(EVENTS), ack_policy=AckPolicy.ACK_FIRST, no_reply=True)
    async def on_table(table: RoutingTable) -> None:
        hear(table)

    return router


def terms_router(hear: Callable[[CaptureTerms], None], process_id: str) -> RabbitRouter:
    """Hear on what terms captures are taken; repeated by the manager, so nothing is kept."""
    router = RabbitRouter()
    queue = broadcast_queue(f"shadow.capture_terms.{process_id}", "capture_terms.v1.#")

    @router.subscriber(queue, topic(EVENTS), ack_policy=AckPolicy.ACK_FIRST, no_reply=True)
    async def on_terms(terms: CaptureTerms) -> None:
        hear(terms)

    return router
