"""What is told to everybody arrives typed, on a queue of one process."""

from datetime import UTC, datetime

import pytest
from faststream.rabbit import RabbitBroker, TestRabbitBroker
from pydantic import ValidationError

from gatemesh_common.hearing import hearing_router
from gatemesh_common.messages import EVENTS, CaptureTerms, Message, RoutingApplied, RoutingTable

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "message",
    [
        RoutingApplied(timestamp=NOON, agent_id="a", pool="other", version=3),
        RoutingTable(timestamp=NOON, pool="other", version=3, instances=()),
        CaptureTerms(timestamp=NOON, pool="other", text="window"),
    ],
    ids=lambda message: type(message).__name__,
)
async def test_a_message_is_heard(message: Message) -> None:
    """Whatever its pool; others are not."""
    heard: list[Message] = []
    broker = RabbitBroker()
    broker.include_router(hearing_router(type(message), heard.append, "service.heard.p1"))
    async with TestRabbitBroker(broker):
        await broker.publish(message, exchange=EVENTS, routing_key=message.key())
    assert heard == [message]


async def test_what_cannot_be_read_is_not_hidden() -> None:
    """It goes to the dead letters, by the middleware of a real broker."""
    broker = RabbitBroker()
    broker.include_router(hearing_router(RoutingTable, lambda _table: None, "service.heard.p1"))
    async with TestRabbitBroker(broker):
        with pytest.raises(ValidationError):
            await broker.publish(b'{"pool": 1}', exchange=EVENTS, routing_key="routing.v1.chat")
