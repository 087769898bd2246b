"""What arrives is handed on, typed."""

from faststream.rabbit import RabbitBroker, TestRabbitBroker

from gatemesh_common.messages import (
    CONTROL,
    EVENTS,
    AnyCommand,
    DrainInstance,
    RoutingApplied,
)
from gatemesh_executor.subscribers import applied_router, command_router

from .conftest import START, World


async def test_each_command_arrives_as_its_own_class(world: World) -> None:
    """The action tells which."""
    obeyed: list[AnyCommand] = []

    async def obey(command: AnyCommand) -> None:
        obeyed.append(command)

    broker = RabbitBroker()
    broker.include_router(command_router(obey))
    command = world.command(DrainInstance, routing_version=3)
    async with TestRabbitBroker(broker):
        await broker.publish(command, exchange=CONTROL, routing_key=command.key())
    assert obeyed == [command]


async def test_the_word_of_an_agent_is_heard() -> None:
    """On a queue of this process alone."""
    heard: list[RoutingApplied] = []
    broker = RabbitBroker()
    broker.include_router(applied_router(heard.append, "p1"))
    word = RoutingApplied(timestamp=START, agent_id="a", pool="p", version=3)
    async with TestRabbitBroker(broker):
        await broker.publish(word, exchange=EVENTS, routing_key=word.key())
    assert heard == [word]
