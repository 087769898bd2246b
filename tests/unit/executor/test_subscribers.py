"""What arrives is handed on, typed."""

from collections.abc import Mapping
from typing import Any

from faststream.rabbit import RabbitBroker, TestRabbitBroker

from gatemesh_common.messages import (
    CONTROL,
    DrainInstance,
)
from gatemesh_executor.subscribers import command_router

from .conftest import World


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
