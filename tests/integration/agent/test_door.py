"""Keys, limits and closed paths at an agent that serves, over real connections."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.integration.agent.parts import Setup, engine, serving, settings_for

from gatemesh_agent.keys import digest_of, written

pytestmark = pytest.mark.integration
CHAT = "/v1/chat/completions"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
KEY = "gm-one"
SHOWN = {"Authorization": f"Bearer {KEY}"}


class Seen:
    """An engine that says what every answer costs, and keeps what it was sent."""

    def __init__(self) -> None:
        self.headers: list[Mapping[str, str]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer as to a chat."""
        await request.read()
        self.headers.append(request.headers.copy())
        message = {"role": "assistant", "content": "Hello."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 40, "completion_tokens": 50, "total_tokens": 90}
        return web.json_response({"choices": [choice], "usage": usage})


def write_keys(path: Path, **limits: int) -> None:
    """Write a file with one key."""
    path.write_text(written("one", digest_of(KEY), limits))


@asynccontextmanager
async def asking(folder: Path, limits: Mapping[str, int]) -> AsyncIterator[Setup]:
    """Run an agent that asks for a key, in front of an engine."""
    write_keys(folder / "keys.toml", **limits)
    async with engine(Seen().answer) as url:
        settings = settings_for(folder, {"e": url}, keys_file=folder / "keys.toml")
        async with serving(settings) as setup:
            yield setup


def error_in(body: bytes) -> dict[str, Any]:
    """Return the error of an answer."""
    return dict(json.loads(body)["error"])


async def test_without_a_key_no_engine_is_asked(tmp_path: Path) -> None:
    """On no path; each API words it as its clients know it."""
    seen = Seen()
    write_keys(tmp_path / "keys.toml")
    async with engine(seen.answer) as url:
        settings = settings_for(tmp_path, {"e": url}, keys_file=tmp_path / "keys.toml")
        async with serving(settings) as setup:
            for path in (CHAT, "/v1/models", "/metrics"):
                got = await setup.post(path, ASKED, Authorization="Bearer guess")
                assert (got.status, error_in(got.body)["code"]) == (401, "invalid_api_key")
            got = await setup.post("/v1/messages", ASKED)
            assert error_in(got.body)["type"] == "authentication_error"
    assert seen.headers == []


@pytest.mark.parametrize("engine_key", [None, "engine-key"])
async def test_the_engine_sees_no_key_of_a_client(tmp_path: Path, engine_key: str | None) -> None:
    """On guarded paths and on others; it gets its own where it asks for one."""
    seen = Seen()
    write_keys(tmp_path / "keys.toml")
    async with engine(seen.answer) as url:
        keys = {"keys_file": tmp_path / "keys.toml", "probe_api_key": engine_key}
        async with serving(settings_for(tmp_path, {"e": url}, **keys)) as setup:
            for path, shown in ((CHAT, SHOWN), ("/v1/embeddings", {"x-api-key": KEY})):
                assert (await setup.post(path, ASKED, **shown)).status == 200
    assert not [headers for headers in seen.headers if KEY in str(headers)]
    expected = f"Bearer {engine_key}" if engine_key else None
    assert {headers.get("Authorization") for headers in seen.headers} == {expected}


async def test_requests_past_the_limit_are_told_when_to_come_again(tmp_path: Path) -> None:
    """A client's library waits by the header."""
    async with asking(tmp_path, {"requests_per_min": 2}) as setup:
        statuses = [(await setup.post(CHAT, ASKED, **SHOWN)).status for _ in range(2)]
        late = await setup.post(CHAT, ASKED, **SHOWN)
    assert statuses == [200, 200]
    assert (late.status, error_in(late.body)["type"]) == (429, "requests")
    assert 1 <= int(late.headers["Retry-After"]) <= 30
    assert error_in(late.body)["code"] == "rate_limit_exceeded"


@pytest.mark.parametrize("path", [CHAT, "/v1/embeddings"])
async def test_tokens_are_those_that_the_engine_counts(tmp_path: Path, path: str) -> None:
    """90 of 100 in an answer: the next one is let in, the third waits."""
    async with asking(tmp_path, {"tokens_per_min": 100}) as setup:
        got = [await setup.post(path, ASKED, **SHOWN) for _ in range(3)]
    assert [one.status for one in got] == [200, 200, 429]
    assert error_in(got[2].body)["type"] == "tokens"
    assert 30 <= int(got[2].headers["Retry-After"]) <= 49


async def test_a_changed_file_holds_without_a_restart(tmp_path: Path) -> None:
    """A key that was taken away is refused as soon as the file was looked at."""
    async with asking(tmp_path, {}) as setup:
        assert (await setup.post(CHAT, ASKED, **SHOWN)).status == 200
        (tmp_path / "keys.toml").write_text("")
        assert setup.agent.keys_feed
        setup.agent.keys_feed.look()
        assert (await setup.post(CHAT, ASKED, **SHOWN)).status == 401


async def test_what_is_for_operators_is_not_on_the_public_port(tmp_path: Path) -> None:
    """Neither the engine's metrics nor its ways to sleep, however the path is written."""
    seen = Seen()
    async with (
        engine(seen.answer) as url,
        serving(settings_for(tmp_path, {"e": url}, expose="api")) as setup,
    ):
        host, _, port = setup.url.removeprefix("http://").partition(":")
        for path in ("/metrics", "/sleep", "/v1/../sleep", "/v1/%2e%2e/sleep"):
            assert await raw_status(host, int(port), f"POST {path} HTTP/1.1") == b"404"
        assert await raw_status(host, int(port), "GET /v1/models HTTP/1.1") == b"200"
    assert len(seen.headers) == 1


async def raw_status(host: str, port: int, line: str) -> bytes:
    """Return the status of a request whose path no client library tidies up."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"{line}\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer.split(b" ", 2)[1]


async def test_a_body_that_does_not_come_ends_the_request(tmp_path: Path) -> None:
    """Whoever opens many of them and sends nothing holds nothing up for long."""
    seen = Seen()
    async with (
        engine(seen.answer) as url,
        serving(settings_for(tmp_path, {"e": url}, body_s=0.2)) as setup,
    ):
        host, _, port = setup.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{{".encode())
        answer = await asyncio.wait_for(reader.read(), 30)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"GATEMESH_AGENT_BODY_S" in answer
    assert seen.headers == []
