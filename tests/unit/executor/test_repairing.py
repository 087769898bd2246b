"""Asking an engine for its own repair."""

import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from gatemesh_executor.repairing import (
    HttpRepair,
    NoRepair,
    RepairFailedError,
    RepairNotOfferedError,
    read_checksums,
)


class Engine:
    """Answers what it was told to and keeps what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.asked: list[tuple[str, object]] = []
        self.kept_open: list[bool] = []
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Answer one request."""
        body = await request.read()
        self.kept_open.append(request.keep_alive)
        self.asked.append((request.path, json.loads(body) if body else None))
        status, content = self.answers.get(request.path, (404, b""))
        return web.Response(status=status, body=content)


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    """Give an engine that listens."""
    found = Engine()
    runner = web.ServerRunner(web.Server(found.handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield found
    await runner.cleanup()


async def test_the_engine_is_asked_as_vllm_wants_it(engine: Engine) -> None:
    """Paths and bodies of its developer mode."""
    engine.answers = {
        "/weight_checker": (200, b'{"checksums": {"a": "1"}}'),
        "/collective_rpc": (200, b""),
        "/reset_prefix_cache": (200, b'{"success": false}'),
    }
    async with HttpRepair() as repair:
        assert await repair.checksums(engine.url) == {"a": "1"}
        await repair.reload(engine.url)
        assert await repair.reset_cache(engine.url) is False
        engine.answers["/reset_prefix_cache"] = (200, b"")
        assert await repair.reset_cache(engine.url) is True
    assert [one for one in engine.asked if one[1] is not None] == [
        ("/weight_checker", {"action": "checksum"}),
        ("/collective_rpc", {"method": "reload_weights"}),
    ]


async def test_no_connection_is_kept(engine: Engine) -> None:
    """Minutes lie between two requests, and vLLM closes idle ones after seconds."""
    engine.answers = {"/collective_rpc": (200, b"")}
    async with HttpRepair() as repair:
        await repair.reload(engine.url)
    assert engine.kept_open == [False]


async def test_an_engine_outside_of_developer_mode_offers_none(engine: Engine) -> None:
    """404, and the way out."""
    async with HttpRepair() as repair:
        with pytest.raises(RepairNotOfferedError, match="VLLM_SERVER_DEV_MODE=1"):
            await repair.checksums(engine.url)


@pytest.mark.parametrize("answer", [(500, b""), (200, b"no json"), (200, b"{}")])
async def test_a_failure_is_told(engine: Engine, answer: tuple[int, bytes]) -> None:
    """With the path."""
    engine.answers["/weight_checker"] = answer
    async with HttpRepair() as repair:
        with pytest.raises(RepairFailedError, match="/weight_checker"):
            await repair.checksums(engine.url)


async def test_an_engine_that_is_gone_is_told() -> None:
    """No repair, no hang."""
    async with HttpRepair() as repair:
        with pytest.raises(RepairFailedError, match="ClientConnectorError"):
            await repair.reload("http://127.0.0.1:1")


async def test_engines_without_any_offer_nothing() -> None:
    """Every way."""
    for ask in (NoRepair().checksums, NoRepair().reload, NoRepair().reset_cache):
        with pytest.raises(RepairNotOfferedError):
            await ask("http://e")


@pytest.mark.parametrize("answer", [None, [], {}, {"checksums": {}}, {"checksums": []}])
def test_an_answer_without_checksums_is_none(answer: object) -> None:
    """An empty one would agree with everything."""
    with pytest.raises(RepairFailedError):
        read_checksums(answer)
