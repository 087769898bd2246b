"""What the executor reads from the broker."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from faststream import AckPolicy
from faststream.rabbit import RabbitMessage, RabbitRouter
from faststream.rabbit.annotations import RabbitMessage as Received

from gatemesh_common.broker import COMMANDS, broadcast_queue, topic, work_queue
from gatemesh_common.messages import CONTROL, EVENTS, RoutingApplied, RoutingTable

Receive = Callable[[bytes, Mapping[str, Any]], Awaitable[None]]


async def keep_bytes(message: RabbitMessage) -> bytes:
    """Decode nothing: a signature is of the bytes that arrived."""
    return bytes(message.body)


def command_router(receive: Receive) -> RabbitRouter:
    """Take in each command. The ack follows the published report, so a crash redelivers."""
    router = RabbitRouter()

    @router.subscriber(
        work_queue(COMMANDS),
        topic(CONTROL),
        ack_policy=AckPolicy.REJECT_ON_ERROR,
        decoder=keep_bytes,
        no_reply=True,
    )
    async def on_command(body: bytes, message: Received) -> None:
        await receive(body, message.headers)

    return router


def applied_router(hear: Callable[[RoutingApplied], None], process_id: str) -> RabbitRouter:
    """Hear which table each agent routes by; repeated by them, so nothing is kept."""
    router = RabbitRouter()
    queue = broadcast_queue(f"executor.applied.{process_id}", "applied.v1.#")

    @router.subscriber(queue, topic(EVENTS), ack_policy=AckPolicy.ACK_FIRST, no_reply=True)
    async def on_applied(applied: RoutingApplied) -> None:
        hear(applied)

    return router


def routing_router(hear: Callable[[RoutingTable], None], process_id: str) -> RabbitRouter:
    """Hear the routing tables, which load balancers follow; repeated, so nothing is kept."""
    router = RabbitRouter()
    queue = broadcast_queue(f"executor.routing.{process_id}", "routing.v1.#")

    @router.subscriber(queue, topic(EVENTS), ack_policy=AckPolicy.ACK_FIRST, no_reply=True)
    async def on_table(table: RoutingTable) -> None:
        hear(table)

    return router
