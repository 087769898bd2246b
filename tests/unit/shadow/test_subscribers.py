"""The wiring between queues and handlers."""

import pytest
from faststream.rabbit import RabbitBroker, TestRabbitBroker
from tests.unit.shadow.parts import NOW, instance, sample_of, table

from gatemesh_common.broker import topic
from gatemesh_common.messages import EVENTS, SHADOW, CaptureTerms, RoutingTable, ShadowSample
from gatemesh_shadow.subscribers import routing_router, sample_router, terms_router


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


async def test_tables_reach_the_fleet() -> None:
    """Of every pool."""
    heard: list[RoutingTable] = []
    broker = RabbitBroker()
    broker.include_router(routing_router(heard.append, "p1"))
    found = table(instance("engine-0"), pool="other")
    async with TestRabbitBroker(broker):
        await broker.publish(found, exchange=topic(EVENTS), routing_key=found.key())
    assert heard == [found]


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


async def test_terms_of_captures_are_heard() -> None:
    """Of every pool."""
    heard: list[CaptureTerms] = []
    broker = RabbitBroker()
    broker.include_router(terms_router(heard.append, "p1"))
    told = CaptureTerms(timestamp=NOW, pool="other", text="window")
    async with TestRabbitBroker(broker):
        await broker.publish(told, exchange=topic(EVENTS), routing_key=told.key())
    assert heard == [told]
