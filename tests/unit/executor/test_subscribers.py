"""What arrives is handed on, typed."""

from collections.abc import Mapping
from typing import Any

from faststream.rabbit import RabbitBroker, TestRabbitBroker

from gatemesh_common.messages import (
    CONTROL,
    EVENTS,
    DrainInstance,
    RoutingApplied,
    RoutingTable,
)
from gatemesh_executor.subscribers import applied_router, command_router, routing_router

from .conftest import START, World


async def test_a_command_arrives_as_its_bytes(world: World) -> None:
    """With its headers: a signature is of nothing else."""
    received: list[tuple[bytes, object]] = []

    async def receive(body: bytes, headers: Mapping[str, Any]) -> None:
        received.append((body, headers.get("x-signature")))

    broker = RabbitBroker()
    broker.include_router(command_router(receive))
    command = world.command(DrainInstance, routing_version=3)
    odd = b'  {"not": "read yet" '
    async with TestRabbitBroker(broker):
        for body in (command.model_dump_json().encode(), odd):
            await broker.publish(
                body,
                exchange=CONTROL,
                routing_key=command.key(),
                headers={"x-signature": "s"},
                content_type="application/json",
            )
    assert received == [(command.model_dump_json().encode(), "s"), (odd, "s")]


async def test_the_word_of_an_agent_is_heard() -> None:
    """On a queue of this process alone."""
    heard: list[RoutingApplied] = []
    broker = RabbitBroker()
    broker.include_router(applied_router(heard.append, "p1"))
    word = RoutingApplied(timestamp=START, agent_id="a", pool="p", version=3)
    async with TestRabbitBroker(broker):
        await broker.publish(word, exchange=EVENTS, routing_key=word.key())
    assert heard == [word]


async def test_the_routing_table_is_heard() -> None:
    """Load balancers follow it."""
    heard: list[RoutingTable] = []
    broker = RabbitBroker()
    broker.include_router(routing_router(heard.append, "p1"))
    table = RoutingTable(timestamp=START, pool="p", version=3, instances=())
    async with TestRabbitBroker(broker):
        await broker.publish(table, exchange=EVENTS, routing_key=table.key())
    assert heard == [table]
