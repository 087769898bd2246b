"""Whoever may declares the topology, everybody else looks for it and adds own queues."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import ChannelNotFoundEntity
from aiormq.exceptions import ChannelAccessRefused

from gatemesh_common.broker import DEAD_LETTERS, EXCHANGES, WORK_QUEUES, WorkQueue
from gatemesh_common.errors import BrokerUnavailableError
from gatemesh_common.messages import EVENTS
from gatemesh_common.publisher import Publisher
from gatemesh_common.settling import settle_topology

OWN = WorkQueue("own.incidents", EVENTS, "incident.v1.#")


class Channel:
    """Keeps what was declared; refuses all but its user's own queue."""

    def __init__(self, missing: str = "", hidden: tuple[str, ...] = ()) -> None:
        self.missing = missing
        self.hidden = hidden
        self.refusals = 0
        self.is_open = True
        self.seen: list[str] = []
        self.declared: list[str] = []
        self.bound: list[str] = []

    async def declare_exchange(self, name: str, *_: object, **options: object) -> "Channel":
        """Refuse, or tell whether it is there."""
        if not options.get("passive"):
            raise ChannelAccessRefused(name)
        return self._look(name)

    async def declare_queue(self, name: str, **options: object) -> "Channel":
        """Declare an own queue, or tell whether another one is there."""
        if options.get("passive"):
            return self._look(name)
        if not name.startswith("own."):
            raise ChannelAccessRefused(name)
        self.declared.append(name)
        return self

    async def bind(self, exchange: str, routing_key: str) -> None:
        """Note a binding."""
        self.bound.append(f"{exchange} {routing_key}")

    async def reopen(self) -> None:
        """Be a channel again."""
        self.is_open = True

    def _look(self, name: str) -> "Channel":
        assert self.is_open
        if name in self.hidden:
            self.refusals += 1
            self.is_open = False
            raise ChannelAccessRefused(name)
        if name == self.missing:
            raise ChannelNotFoundEntity(name)
        self.seen.append(name)
        return self


class Opening:
    """A publisher of a user who may not declare; counts the channels that it opened."""

    def __init__(self, channel: Channel) -> None:
        self.may_declare = True
        self.hidden: set[str] = set()
        self.opened = 0
        self._channel = channel

    @asynccontextmanager
    async def fresh_channel(self) -> AsyncIterator[AbstractChannel]:
        """Give the channel."""
        self.opened += 1
        yield cast("AbstractChannel", self._channel)


async def test_who_is_refused_looks_and_asks_no_more() -> None:
    """A broker that logs each refusal is not asked every five seconds."""
    channel = Channel()
    opening = Opening(channel)
    await settle_topology(cast("Publisher", opening), (OWN,))
    assert opening.may_declare is False
    assert channel.seen == [*EXCHANGES, DEAD_LETTERS, *(queue.name for queue in WORK_QUEUES)]
    assert channel.declared == ["own.incidents"]
    assert channel.bound == ["vllm_health_event incident.v1.#"]
    await settle_topology(cast("Publisher", opening), (OWN,))
    assert opening.opened == 3


async def test_what_the_broker_does_not_show_is_not_waited_for() -> None:
    """From 4.2.6 on it shows nobody what he has no right to; it is not asked again."""
    channel = Channel(hidden=("vllm_control", "executor.commands"))
    opening = Opening(channel)
    for _ in range(2):
        await settle_topology(cast("Publisher", opening))
    assert opening.hidden == {"vllm_control", "executor.commands"}
    assert channel.refusals == 2
    assert {"vllm_health_alert", DEAD_LETTERS} <= set(channel.seen)


async def test_what_is_missing_is_named_and_passes() -> None:
    """Whoever starts before the manager waits for it."""
    opening = Opening(Channel(missing="executor.commands"))
    with pytest.raises(
        BrokerUnavailableError, match=r"executor\.commands is not there yet"
    ) as told:
        await settle_topology(cast("Publisher", opening))
    assert told.value.retryable
