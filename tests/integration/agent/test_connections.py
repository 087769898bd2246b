"""Plain connections to engines that keep them, close them, break them and say odd things."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest
from aiohttp import ClientError
from multidict import CIMultiDict
from tests.integration.agent.parts import NO_BROKER

from gatemesh_agent.connections import Answer, ConnectError, Connections, Target
from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.upstream import Order, Upstream, open_upstream

pytestmark = pytest.mark.integration

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class Engine:
    """A raw server that says the given bytes to each request."""

    says: list[bytes]
    closes: bool = False
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    target: Target = field(default=Target("127.0.0.1", 0, "", ""))
    ended: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer every request on one connection."""
        self.connections += 1
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                for piece in self.says:
                    writer.write(piece)
                    await writer.drain()
                if self.closes:
                    break
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        self.ended.release()


@asynccontextmanager
async def serving(*says: bytes, closes: bool = False) -> AsyncIterator[Engine]:
    """Run a raw server on a free port."""
    engine = Engine(list(says), closes)
    server = await asyncio.start_server(engine.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    engine.target = Target("127.0.0.1", port, "/p", f"127.0.0.1:{port}")
    async with server:
        yield engine
    for _ in range(engine.connections):
        await engine.ended.acquire()


@asynccontextmanager
async def opened(idle_s: float = 5.0) -> AsyncIterator[Connections]:
    """Hand out connections that are closed at the end."""
    connections = Connections(connect_s=5.0, idle_s=idle_s, max_header_bytes=2**16)
    try:
        yield connections
    finally:
        connections.close()


async def ask(connections: Connections, engine: Engine, body: bytes = b"{}") -> Answer:
    """Send one request and read its answer to the end."""
    answer = await connections.post(engine.target, "/v1/x?y=1", {"X-A": "b"}, body)
    await answer.content.read()
    answer.release()
    return answer


async def test_a_connection_serves_one_request_after_the_other() -> None:
    """And the engine sees what was sent, path and headers as they are."""
    async with serving(OK) as engine, opened() as connections:
        for _ in range(3):
            assert (await ask(connections, engine)).status == 200
        assert engine.connections == 1
    assert engine.requests[0] == (
        b"POST /p/v1/x?y=1 HTTP/1.1\r\nHost: " + engine.target.named.encode() + b"\r\n"
        b"X-A: b\r\nContent-Length: 2\r\n\r\n{}"
    )


async def test_a_connection_is_not_kept_past_its_time() -> None:
    """The engine would close it under the next request."""
    async with serving(OK) as engine, opened(idle_s=0.01) as connections:
        await ask(connections, engine)
        await asyncio.sleep(0.05)
        await ask(connections, engine)
        assert engine.connections == 2


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
)
async def test_an_engine_that_closes_is_asked_by_a_new_connection(said: bytes) -> None:
    """It says so in its answer."""
    async with serving(said, closes=True) as engine, opened() as connections:
        await ask(connections, engine)
        await ask(connections, engine)
        assert engine.connections == 2


async def test_a_body_without_a_length_ends_with_its_connection() -> None:
    """As HTTP/1.0 servers send it."""
    said = b"HTTP/1.1 200 OK\r\n\r\nall of it"
    async with serving(said, closes=True) as engine, opened() as connections:
        answer = await connections.post(engine.target, "/", {}, b"")
        assert await answer.content.read() == b"all of it"


async def test_news_before_the_answer_are_skipped() -> None:
    """103 says that there will be one."""
    async with serving(b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK) as engine, opened() as connections:
        assert (await ask(connections, engine)).status == 200


async def test_an_answer_that_was_not_read_takes_its_connection_along() -> None:
    """The next request must not read the rest of it."""
    async with serving(OK) as engine, opened() as connections:
        answer = await connections.post(engine.target, "/", {}, b"")
        answer.close()
        assert (await ask(connections, engine)).status == 200
        assert engine.connections == 2


async def test_nobody_there_is_told_from_a_connection_that_broke() -> None:
    """The first may be asked elsewhere at once."""
    async with serving(b"", closes=True) as engine, opened() as connections:
        with pytest.raises(ClientError):
            await ask(connections, engine)
    async with opened() as connections:
        with pytest.raises(ConnectError):
            await ask(connections, engine)


async def test_what_an_engine_says_unasked_is_given_to_nobody() -> None:
    """Bytes behind an answer would become the next one."""
    async with serving(OK, OK) as engine, opened() as connections:
        await ask(connections, engine)
        await asyncio.sleep(0.05)
        await ask(connections, engine)
        assert engine.connections == 2


async def test_a_wait_that_ends_leaves_the_answer_readable() -> None:
    """Who looks in between whether an instance is still in rotation reads on afterwards."""
    held = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        await held.wait()
        writer.write(b"cd")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(slow, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = AgentSettings.model_validate({"GATEMESH_AMQP_URL": NO_BROKER})
    order = Order("POST", "/", CIMultiDict(), b"")
    address = f"http://127.0.0.1:{port}"
    async with (
        server,
        open_upstream(settings) as upstream,
        upstream.ask(address, order) as reply,
    ):
        assert await reply.first() == b"ab"
        for _ in range(3):
            assert await reply.within(0.02) is None
        held.set()
        assert await reply.within(5.0) == b"cd"
        assert await reply.within(5.0) == b""


async def test_a_client_that_leaves_is_no_silence() -> None:
    """Its cancellation goes through, whatever the alarm does."""

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = AgentSettings.model_validate({"GATEMESH_AMQP_URL": NO_BROKER})
    reading = asyncio.Event()

    async def read(upstream: Upstream) -> None:
        order = Order("POST", "/", CIMultiDict(), b"")
        async with upstream.ask(f"http://127.0.0.1:{port}", order) as reply:
            await reply.first()
            reading.set()
            await reply.within(5.0)

    async with server, open_upstream(settings) as upstream:
        task = asyncio.create_task(read(upstream))
        await reading.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
