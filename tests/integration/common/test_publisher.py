"""Sending on a real broker: every way in which a message may not arrive is an error in time."""

import asyncio
from datetime import UTC, datetime

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel

from gatemesh_common.broker import UNSHARDED, VERDICTS, declare_topology
from gatemesh_common.errors import BrokerRefusedError, BrokerUnavailableError, UnroutableError
from gatemesh_common.messages import RoutingApplied, Verdict
from gatemesh_common.publisher import Publisher

from ..gate import Gate  # noqa: TID252 (shared by the integration tests)
from .conftest import depth, take

pytestmark = pytest.mark.integration
NOW = datetime(2026, 5, 1, tzinfo=UTC)
VERDICT = Verdict(timestamp=NOW, instance_id="e", request_id="r", check_level="L1")
APPLIED = RoutingApplied(timestamp=NOW, agent_id="a", pool="p", version=1)


async def test_a_message_arrives_with_its_envelope(
    publisher: Publisher, channel: AbstractChannel
) -> None:
    """Any consumer in any language finds type, id and time outside the body."""
    await publisher.publish(VERDICT)
    got = await take(channel, VERDICTS.name)
    assert Verdict.model_validate_json(got.body) == VERDICT
    assert (got.message_id, got.type, got.app_id) == (VERDICT.message_id, "Verdict", "test")
    assert got.content_type == "application/json"
    assert got.headers["cloudEvents:type"] == "gatemesh.verdict.v1"
    assert got.delivery_mode is aio_pika.DeliveryMode.PERSISTENT


async def test_a_mandatory_message_without_a_queue_is_an_error(
    publisher: Publisher, channel: AbstractChannel
) -> None:
    """A mandatory return must surface."""
    queue = await channel.declare_queue(VERDICTS.name, passive=True)
    await queue.unbind(UNSHARDED)
    with pytest.raises(UnroutableError, match="no queue is bound"):
        await publisher.publish(VERDICT)


async def test_an_event_without_a_reader_is_no_error(publisher: Publisher) -> None:
    """Who repeats himself needs no reader."""
    await publisher.publish(APPLIED)


async def test_a_missing_exchange_does_not_silence_the_publisher(
    publisher: Publisher, channel: AbstractChannel
) -> None:
    """The broker closes the channel; the next message goes over a new one."""
    with pytest.raises((BrokerRefusedError, BrokerUnavailableError)):
        await publisher.publish_raw(aio_pika.Message(b"{}"), "no-such", "k", mandatory=True)
    await publisher.publish(VERDICT)
    assert await depth(channel, VERDICTS.name) == 1


async def test_a_broker_that_is_away_is_an_error_within_the_deadline(vhost_url: str) -> None:
    """And the same publisher works again once it is back."""
    async with Gate(vhost_url) as gate, Publisher(gate.url, "test", deadline_s=2) as publisher:
        await declare_topology(await publisher.channel())
        await publisher.publish(APPLIED)
        await gate.shut()
        async with asyncio.timeout(10):
            with pytest.raises(BrokerUnavailableError):
                await publisher.publish(APPLIED)
        await gate.open()
        await publisher.publish(APPLIED)


async def test_a_full_queue_is_an_error(publisher: Publisher, channel: AbstractChannel) -> None:
    """The broker answers nack."""
    await channel.declare_queue(
        "full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"}
    )
    body = aio_pika.Message(b"{}")

    async def fill() -> None:
        for _ in range(5):
            await publisher.publish_raw(body, "", "full", mandatory=True)

    with pytest.raises(BrokerUnavailableError, match="nack"):
        await fill()
    await channel.queue_delete("full")


async def test_many_at_once_share_one_channel(
    publisher: Publisher, channel: AbstractChannel
) -> None:
    """Nothing is lost when everybody sends at the same time."""
    many = [VERDICT.model_copy(update={"message_id": str(n)}) for n in range(200)]
    await asyncio.gather(*(publisher.publish(verdict) for verdict in many))
    assert await depth(channel, VERDICTS.name) == 200


async def test_nobody_listens() -> None:
    """A refused connection is a passing fault at once."""
    async with Publisher("amqp://guest:guest@127.0.0.1:1/", "test", deadline_s=5) as publisher:
        with pytest.raises(BrokerUnavailableError):
            await publisher.publish(VERDICT)
