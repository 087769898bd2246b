"""What the executor reads from the broker."""

from collections.abc import Awaitable, Callable

from faststream import AckPolicy
from faststream.rabbit import RabbitRouter

from gatemesh_common.broker import COMMANDS, broadcast_queue, topic, work_queue
from gatemesh_common.messages import CONTROL, EVENTS, AnyCommand, Command, RoutingApplied


def command_router(obey: Callable[[AnyCommand], Awaitable[None]]) -> RabbitRouter:
    """Obey each command. The ack follows the published report, so a crash redelivers."""
    router = RabbitRouter()

    @router.subscriber(
        work_queue(COMMANDS),
        topic(CONTROL),
        ack_policy=AckPolicy.REJECT_ON_ERROR,
        no_reply=True,
    )
    async def on_command(command: Command) -> None:
        await obey(command)

    return router


def applied_router(hear: Callable[[RoutingApplied], None], process_id: str) -> RabbitRouter:
    """Hear which table each agent routes by; repeated by them, so nothing is kept."""
    router = RabbitRouter()
    queue = broadcast_queue(f"executor.applied.{process_id}", "applied.v1.#")

    @router.subscriber(queue, topic(EVENTS), ack_policy=AckPolicy.ACK_FIRST, no_reply=True)
    async def on_applied(applied: RoutingApplied) -> None:
        hear(applied)

    return router
