"""The envelope of a message; sending is tested on a real broker."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from aio_pika import DeliveryMode
from prometheus_client import REGISTRY

from gatemesh_common.errors import BrokerUnavailableError
from gatemesh_common.messages import ActionRequest, TrialRequest, Verdict
from gatemesh_common.publisher import Publisher, envelope, user_of, whole_connection

NOW = datetime(2026, 5, 1, tzinfo=UTC)
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
VERDICT = Verdict(timestamp=NOW, instance_id="e", request_id="r", check_level="L1")


def test_an_envelope_can_be_read_without_our_code() -> None:
    """CloudEvents-shaped headers, persistent, typed, timed."""
    ready = envelope(VERDICT, "agent")
    assert ready.headers == {
        "gatemesh-bucket": "26",
        "cloudEvents:specversion": "1.0",
        "cloudEvents:id": VERDICT.message_id,
        "cloudEvents:type": "gatemesh.verdict.v1",
        "cloudEvents:source": "/gatemesh/agent",
        "cloudEvents:time": NOW.isoformat(),
    }
    assert (ready.type, ready.app_id) == ("Verdict", "agent")
    assert (ready.content_type, ready.timestamp) == ("application/json", NOW)
    assert ready.delivery_mode is DeliveryMode.PERSISTENT
    assert b"null" not in ready.body


@pytest.mark.parametrize(
    ("fields", "placed"),
    [
        ({"hard": True}, {"gatemesh-lane": "proofs"}),
        ({"hard": True, "outcome": "passed"}, {"gatemesh-bucket": "26"}),
        ({}, {"gatemesh-bucket": "26"}),
    ],
)
def test_a_proof_names_its_lane_and_nothing_else_does(
    fields: dict[str, object], placed: dict[str, str]
) -> None:
    """With a bucket besides, the broker would deliver it twice."""
    headers = envelope(Verdict(**VERDICT.model_dump() | fields), "agent").headers
    assert {name: headers[name] for name in headers if name.startswith("gatemesh")} == placed


def test_trace_context_travels() -> None:
    """Where there is one."""
    traced = VERDICT.model_copy(update={"traceparent": TRACE})
    assert envelope(traced, "agent").headers["traceparent"] == TRACE


@pytest.mark.parametrize("kind", [ActionRequest, TrialRequest])
def test_a_request_names_its_sender(kind: type[ActionRequest]) -> None:
    """By the property that the broker proves; other messages need none."""
    request = kind(timestamp=NOW, action="pause", requested_by="ann")
    assert envelope(request, "ctl", "alice").user_id == "alice"
    assert envelope(VERDICT, "agent", "alice").user_id is None


@pytest.mark.parametrize(
    ("address", "user"),
    [
        ("amqp://alice:secret@broker:5672/v", "alice"),
        ("amqps://al%40corp:secret@broker/", "al@corp"),
        ("amqp://broker/", "guest"),
        ("amqp://alice:secret@broker/?auth=PLAIN&heartbeat=5", "alice"),
        ("amqps://alice@broker/?auth=external", None),
    ],
)
def test_the_user_is_that_of_the_connection(address: str, user: str | None) -> None:
    """Where a certificate says who it is, nobody is named: a wrong name is refused."""
    assert user_of(address) == user


async def test_a_connection_closed_by_others_ends_nobody() -> None:
    """What waited on it is told so, as of any other broken connection."""
    answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    answer.cancel()
    with pytest.raises(ConnectionAbortedError):
        async with whole_connection(), asyncio.timeout(5):
            await answer


async def test_a_cancelled_task_stays_cancelled() -> None:
    """Whoever is asked to stop, stops."""

    async def wait() -> None:
        async with whole_connection():
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_that_the_client_takes_for_a_fault_stays_one() -> None:
    """While it connects it tells a fault of the connection instead, and we would try for ever."""

    async def connect() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            raise ConnectionError("cancelled") from error

    async def try_for_ever() -> None:
        while True:
            with suppress(OSError):
                async with whole_connection():
                    await connect()

    task = asyncio.create_task(try_for_ever())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)


async def test_a_deadline_stays_a_deadline() -> None:
    """It is a cancellation, too, and not one of the connection."""
    with pytest.raises(TimeoutError):
        async with whole_connection(), asyncio.timeout(0):
            await asyncio.Event().wait()


async def test_a_message_that_does_not_go_is_counted() -> None:
    """By exchange and by the class of the error."""
    labels = {"exchange": VERDICT.exchange, "error": "BrokerUnavailableError"}
    before = REGISTRY.get_sample_value("gatemesh_publish_failures_total", labels) or 0
    async with Publisher("amqp://guest:guest@127.0.0.1:1/", "test") as publisher:
        with pytest.raises(BrokerUnavailableError):
            await publisher.publish(VERDICT)
    assert REGISTRY.get_sample_value("gatemesh_publish_failures_total", labels) == before + 1


async def test_closing_what_was_never_open() -> None:
    """Is harmless, also twice."""
    publisher = Publisher("amqp://guest:guest@127.0.0.1:1/", "test")
    await publisher.close()
    await publisher.close()


async def test_a_channel_of_its_own_is_not_waited_for_without_end() -> None:
    """Something listens there and says nothing: not a broker, or one that hangs."""
    left = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        left.set()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    publisher = Publisher(f"amqp://u:p@127.0.0.1:{port}/", "agent", 0.05)
    async with asyncio.timeout(20):
        with pytest.raises(TimeoutError):
            async with publisher.fresh_channel():
                pass
        await left.wait()
    server.close()
    await server.wait_closed()
