"""An agent in this process, engines to put behind it, and what it hands to the mesh."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from aiohttp import web

from gatemesh_agent.service import Agent, build_agent, listening, spool_path
from gatemesh_agent.settings import AgentSettings
from gatemesh_common.messages import Message, RequestRejected, TelemetryWindow, Verdict

NO_BROKER = "amqp://nobody:nothing@127.0.0.1:1/"
DEADLINE_S = 30.0
KINDS: dict[str, type[Message]] = {
    kind.__name__: kind for kind in (Verdict, RequestRejected, TelemetryWindow)
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
M = TypeVar("M", bound=Message)


@dataclass
class Setup:
    """An agent that serves, and a client session."""

    agent: Agent
    url: str
    session: aiohttp.ClientSession

    async def post(self, path: str, body: Any, **headers: str) -> "Got":
        """Send a JSON body and read the whole answer."""
        async with self.session.post(self.url + path, json=body, headers=headers) as response:
            return Got(response.status, response.headers, await response.read())

    async def verdicts(self) -> list[Verdict]:
        """Return what was concluded against engines, once it is known whose fault it is."""
        await self.agent.guarding.opinions.settle()
        return self.spooled(Verdict)

    def spooled(self, kind: type[M]) -> list[M]:
        """Return what waits in the spool, oldest first."""
        return spooled(spool_path(self.agent.settings), kind)


@dataclass
class Got:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def spooled(path: Path, kind: type[M]) -> list[M]:
    """Return what waits in a spool file, oldest first."""
    with sqlite3.connect(path) as database:
        rows = database.execute(
            "SELECT body FROM spool WHERE type = ? ORDER BY id", (kind.__name__,)
        ).fetchall()
    database.close()
    return [kind.model_validate_json(body) for (body,) in rows]


def settings_for(folder: Path, instances: dict[str, str], **more: Any) -> AgentSettings:
    """Return settings of an agent on a free port, without a broker."""
    given = {
        "port": 0,
        "instances": instances,
        "spool_dir": folder / "spool",
        "fingerprint_key": "0123456789abcdef",
        "GATEMESH_AMQP_URL": NO_BROKER,
        **more,
    }
    return AgentSettings.model_validate(given)


@asynccontextmanager
async def serving(settings: AgentSettings) -> AsyncIterator[Setup]:
    """Run an agent's front door in this process; nothing is sent to a broker."""
    async with (
        build_agent(settings) as agent,
        listening(agent) as url,
        aiohttp.ClientSession() as session,
    ):
        yield Setup(agent, url, session)


@asynccontextmanager
async def engine(handler: Handler) -> AsyncIterator[str]:
    """Serve one handler on every path of a free port."""
    application = web.Application(client_max_size=2**30)
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(
        application, access_log=None, handler_cancellation=True, shutdown_timeout=0.5
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def saying(body: bytes, status: int = 200, kind: str = "application/json") -> Handler:
    """Return an engine that always says the same."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        return web.Response(body=body, status=status, headers={"Content-Type": kind})

    return answer


def streaming(*pieces: bytes, cut: bool = False) -> Handler:
    """Return an engine that streams these pieces, and may then cut the connection."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            # Let each piece leave on its own.
            await asyncio.sleep(0)
        if cut:
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write_eof()
        return response

    return answer


async def until(condition: Callable[[], object], deadline_s: float = DEADLINE_S) -> None:
    """Return once a condition holds; fail when it does not in time."""
    async with asyncio.timeout(deadline_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def chat(text: str = "Tell me about the sea.", **more: Any) -> dict[str, Any]:
    """Return a chat request."""
    message = {"role": "user", "content": text}
    return {"model": "sim", "messages": [message], "max_tokens": 24, "temperature": 0, **more}


def completion(text: str = "The sea is", **more: Any) -> dict[str, Any]:
    """Return a completion request."""
    return {"model": "sim", "prompt": text, "max_tokens": 24, "temperature": 0, **more}
