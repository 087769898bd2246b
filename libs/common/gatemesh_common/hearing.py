"""Hearing what is told to everybody: by a queue of one process, which is gone with it."""

from collections.abc import Callable
from typing import TypeVar

from faststream import AckPolicy
from faststream.rabbit import RabbitMessage, RabbitRouter

from gatemesh_common.broker import broadcast_queue, topic
from gatemesh_common.message import Message

M = TypeVar("M", bound=Message)


async def keep_bytes(message: RabbitMessage) -> bytes:
    """Decode nothing: a signature is of the bytes that arrived."""
    return bytes(message.body)


def hearing_router(kind: type[M], hear: Callable[[M], None], queue: str) -> RabbitRouter:
    """Hear each message of a kind, of every pool; it is repeated by its sender, so none is kept."""
    router = RabbitRouter()
    own = broadcast_queue(queue, f"{kind.routing_key}.#")

    @router.subscriber(
        own,
        topic(kind.exchange),
        ack_policy=AckPolicy.ACK_FIRST,
        decoder=keep_bytes,
        no_reply=True,
    )
    async def on_message(body: bytes) -> None:
        hear(kind.model_validate_json(body))

    return router
