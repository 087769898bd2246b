"""What the executor reads from the broker."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from faststream import AckPolicy
from faststream.rabbit import RabbitRouter
from faststream.rabbit.annotations import RabbitMessage as Received

from gatemesh_common.broker import COMMANDS, topic, work_queue
from gatemesh_common.hearing import keep_bytes
from gatemesh_common.messages import CONTROL

Receive = Callable[[bytes, Mapping[str, Any]], Awaitable[None]]


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
