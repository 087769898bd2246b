"""Looks at engines on real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gatemesh_executor.health import Health, HttpHealth

pytestmark = pytest.mark.integration


@asynccontextmanager
async def engine(status: int, delay_s: float = 0.0) -> AsyncIterator[str]:
    """Serve `/health` with that status, and give the address."""

    async def answer(_: web.Request) -> web.Response:
        await asyncio.sleep(delay_s)
        return web.Response(status=status)

    application = web.Application()
    application.router.add_get("/health", answer)
    async with TestServer(application) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.mark.parametrize(
    ("status", "found"), [(200, Health.READY), (503, Health.NOT_READY), (404, Health.NOT_READY)]
)
async def test_only_200_is_ready(status: int, found: Health) -> None:
    """A dead engine answers 503 for a moment."""
    async with engine(status) as base_url, HttpHealth() as health:
        assert await health.look(base_url) is found


async def test_a_hanging_engine_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds its connection and answers nothing."""
    monkeypatch.setattr(HttpHealth, "deadline_s", 0.2)
    async with engine(200, delay_s=1.0) as base_url, HttpHealth() as health:
        assert await health.look(base_url) is Health.NOT_READY


async def test_a_closed_port_is_refused() -> None:
    """As long as an engine loads, nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with HttpHealth() as health:
        assert await health.look(f"http://127.0.0.1:{port}") is Health.REFUSED
