"""What the shadow reads from the broker."""

from collections.abc import Awaitable, Callable

from faststream import AckPolicy
from faststream.rabbit import RabbitRouter

from gatemesh_common.broker import SAMPLES, topic, work_queue
from gatemesh_common.messages import SHADOW, ShadowSample


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
