"""The library, and a way to call handlers without a network."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import orjson
import pytest
from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.test_utils import make_mocked_request

from gatemesh_engine_sim.engine import Engine
from gatemesh_engine_sim.fault_plan import FaultPlan
from gatemesh_engine_sim.faults import fault_table
from gatemesh_engine_sim.intake import Asked, Route, understand
from gatemesh_engine_sim.library import Library, load_library
from gatemesh_engine_sim.metrics import EngineMetrics
from gatemesh_engine_sim.scoring import Scorer
from gatemesh_engine_sim.service import Service
from gatemesh_engine_sim.settings import SimSettings

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture(scope="session")
def library() -> Library:
    """The packaged answers."""
    return load_library()


@pytest.fixture
def ask(library: Library) -> Callable[..., Asked]:
    """Understands a chat body given as keywords."""

    def understood(route: Route = Route.CHAT, **body: Any) -> Asked:
        prompt: dict[str, Any] = {"messages": [{"role": "user", "content": "Tell me a story."}]}
        if route is Route.COMPLETIONS:
            prompt = {"prompt": "Tell me a story."}
        return understand(route, prompt | body, {}, SimSettings(), library.vocabulary)

    return understood


class Captured(AbstractStreamWriter):
    """Keeps what a handler streams."""

    def __init__(self) -> None:
        self.body = bytearray()

    async def write(self, chunk: Any) -> None:
        """Keep the bytes."""
        self.body += chunk

    async def write_eof(self, chunk: bytes = b"") -> None:
        """Keep the last bytes."""
        self.body += chunk

    async def drain(self) -> None:
        """Nothing waits."""

    def enable_compression(self, *_args: Any, **_kwargs: Any) -> None:
        """Not used."""

    def enable_chunking(self) -> None:
        """Chunks are not shown."""

    async def write_headers(self, *_args: Any, **_kwargs: Any) -> None:
        """Headers are read from the response."""


@dataclass(slots=True)
class Answered:
    """What a client would have got."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The events of a stream, the end mark included as text."""
        lines = [event[6:] for event in self.body.decode().split("\n\n") if event]
        return [line if line == "[DONE]" else orjson.loads(line) for line in lines]


Call = Callable[..., Awaitable[Answered]]


@pytest.fixture
def call() -> Call:
    """Calls a handler with a body; the transport is a stand-in."""

    async def called(
        handler: Handler, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answered:
        payload = StreamReader(
            mock.Mock(_reading_paused=False), 2**20, loop=asyncio.get_running_loop()
        )
        payload.feed_data(body if isinstance(body, bytes) else orjson.dumps(body))
        payload.feed_eof()
        writer = Captured()
        request = make_mocked_request("POST", "/", headers, payload=payload, writer=writer)
        response = await handler(request)
        sent = bytes(writer.body)
        if isinstance(response, web.Response) and isinstance(response.body, bytes):
            sent = response.body
        return Answered(response.status, sent, dict(response.headers))

    return called


@pytest.fixture
def make_service(library: Library) -> Callable[..., Service]:
    """Builds a service whose clock stands still, from settings given as keywords."""

    def made(**settings: Any) -> Service:
        chosen = SimSettings(**settings)
        return Service(
            settings=chosen,
            library=library,
            scorer=Scorer(library),
            faults=fault_table(library),
            plan=FaultPlan(schedule=(), drill=lambda: None, rng=random.Random(0)),
            engine=Engine(max_running=chosen.max_num_seqs, max_waiting=chosen.max_num_queued_reqs),
            metrics=EngineMetrics(chosen.model),
            clock=lambda: 100.0,
            wall_clock=lambda: 1_700_000_000.0,
            rng=random.Random(1),
            begun_s=90.0,
        )

    return made
