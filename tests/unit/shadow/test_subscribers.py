"""The wiring between queues and handlers."""

import pytest
from faststream.rabbit import RabbitBroker, TestRabbitBroker
from tests.unit.shadow.parts import sample_of

from gatemesh_common.broker import topic
from gatemesh_common.messages import SHADOW, ShadowSample
from gatemesh_shadow.subscribers import sample_router


async def test_samples_reach_the_judge() -> None:
    """Whatever their pool."""
    judged: list[ShadowSample] = []

    async def judge(sample: ShadowSample) -> None:
        judged.append(sample)

    broker = RabbitBroker()
    broker.include_router(sample_router(judge))
    sample = sample_of(pool="other")
    async with TestRabbitBroker(broker):
        await broker.publish(sample, exchange=topic(SHADOW), routing_key=sample.key())
    assert judged == [sample]


async def test_a_failing_judge_is_not_hidden() -> None:
    """It goes to the dead letters, by the middleware of a real broker."""

    async def judge(_sample: ShadowSample) -> None:
        raise ValueError("poison")

    broker = RabbitBroker()
    broker.include_router(sample_router(judge))
    sample = sample_of()
    async with TestRabbitBroker(broker):
        with pytest.raises(ValueError, match="poison"):
            await broker.publish(sample, exchange=topic(SHADOW), routing_key=sample.key())
