"""What is not guarded passes as it is."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from tests.integration.agent.parts import Got, engine, serving, settings_for, streaming

from gatemesh_common.messages import RequestRejected, TelemetryWindow

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

pytestmark = pytest.mark.integration


async def mirror(request: web.Request) -> web.StreamResponse:
    """Answer with everything that came in."""
    seen = {
        "method": request.method,
        "target": request.raw_path,
        "headers": [[name, value] for name, value in request.headers.items()],
        "body": (await request.read()).hex(),
    }
    headers = [("X-Twice", "1"), ("X-Twice", "2"), ("Set-Cookie", "a=b"), ("X-Odd", "ü")]
    return web.Response(body=json.dumps(seen).encode(), status=207, reason="Odd", headers=headers)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
async def test_any_method_path_query_and_body_pass(tmp_path: Path, method: str) -> None:
    """Encoded characters stay as they were written."""
    target = "/a%2Fb//c;d=1?q=%20x&q=%2B&e="
    body = bytes(range(256)) * 4 if method not in ("GET", "OPTIONS") else b""
    async with (
        engine(mirror) as address,
        serving(settings_for(tmp_path, {"e": address})) as setup,
    ):
        host, port = setup.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: client.example\r\n"
            "X-Mixed-Case: a\r\nx-mixed-case: b\r\n"
            f"Accept-Encoding: br\r\nContent-Length: {len(body)}\r\nConnection: close, X-Hop\r\n"
            f"X-Hop: 1\r\ntraceparent: {TRACE}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    raw_head, _, payload = answer.partition(b"\r\n\r\n")
    lines = raw_head.decode().split("\r\n")
    assert lines[0] == "HTTP/1.1 207 Odd"
    assert {"X-Twice: 1", "X-Twice: 2", "Set-Cookie: a=b", "X-Odd: ü"} <= set(lines)
    seen = json.loads(payload)
    assert (seen["method"], seen["target"], seen["body"]) == (method, target, body.hex())
    sent = [tuple(pair) for pair in seen["headers"]]
    assert ("X-Mixed-Case", "a") in sent
    assert ("X-Mixed-Case", "b") in sent
    assert ("Accept-Encoding", "br") in sent
    names = {name.lower() for name, _ in sent}
    assert "traceparent" in names
    assert "x-request-id" in names
    assert not {"x-hop", "user-agent", "accept"} & names


async def test_cookies_of_one_client_never_reach_another(tmp_path: Path) -> None:
    """The agent keeps none."""
    async with (
        engine(mirror) as address,
        serving(settings_for(tmp_path, {"e": address})) as setup,
    ):
        for _ in range(2):
            async with setup.session.get(setup.url + "/x", headers={"Cookie": ""}) as response:
                setup.session.cookie_jar.clear()
                seen = json.loads(await response.read())
    assert not [value for name, value in seen["headers"] if name == "Cookie" and value]


def sent_id(got: Got) -> str:
    """Return the request id that the engine saw."""
    sent = {name.lower(): value for name, value in json.loads(got.body)["headers"]}
    return str(sent["x-request-id"])


async def test_request_ids_go_in_and_out(tmp_path: Path) -> None:
    """The client's own is kept; without one the agent makes one."""
    async with (
        engine(mirror) as address,
        serving(settings_for(tmp_path, {"e": address})) as setup,
    ):
        own = await setup.post("/x", {}, **{"X-Request-Id": "mine-1"})
        made = await setup.post("/x", {})
    assert own.headers["X-Request-Id"] == "mine-1"
    assert sent_id(own) == "mine-1"
    made_id = made.headers["X-Request-Id"]
    assert sent_id(made) == made_id
    assert len(made_id) == 32
    assert own.headers["X-Gatemesh-Instance"] == "e"


async def test_head_and_empty_answers_pass(tmp_path: Path, engines: dict[str, str]) -> None:
    """No body where there is none."""
    async with serving(settings_for(tmp_path, engines)) as setup:
        async with setup.session.get(setup.url + "/health") as response:
            assert (response.status, await response.read()) == (200, b"")
        async with setup.session.head(setup.url + "/v1/models") as response:
            assert (response.status, await response.read()) == (200, b"")


async def test_large_uploads_flow_through(tmp_path: Path) -> None:
    """Over the limit of guarded bodies, with and without a length, and with 100-continue."""

    async def count(request: web.Request) -> web.StreamResponse:
        size = 0
        async for piece in request.content.iter_any():
            size += len(piece)
        return web.json_response([size, request.headers.get("Content-Length")])

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(300):
            yield b"x" * 10_000

    async with engine(count) as address:
        settings = settings_for(tmp_path, {"e": address}, max_body_bytes=2**20)
        async with serving(settings) as setup:
            url = setup.url + "/v1/audio/transcriptions"
            async with setup.session.post(url, data=pieces()) as response:
                assert await response.json() == [3_000_000, None]
            async with setup.session.post(
                url, data=io.BytesIO(b"x" * 3_000_000), expect100=True
            ) as response:
                assert await response.json() == [3_000_000, "3000000"]


async def test_other_ways_to_generate_are_counted(tmp_path: Path) -> None:
    """A proxy that guards some paths must say what went past it."""
    async with (
        engine(mirror) as address,
        serving(settings_for(tmp_path, {"e": address})) as setup,
    ):
        for path in ("/inference/v1/generate", "/generative_scoring", "/v1/embeddings"):
            await setup.post(path, {})
        await setup.post("/v1/chat/completions", ["no object"])
        setup.agent.roll_telemetry()
        [window] = setup.spooled(TelemetryWindow)
    assert window.unguarded == 3
    assert window.requests == 4


async def test_a_torn_unguarded_answer_looks_torn(tmp_path: Path) -> None:
    """The client's connection breaks as the engine's did."""
    handler = streaming(b"some", b"thing", cut=True)
    async with (
        engine(handler) as address,
        serving(settings_for(tmp_path, {"e": address})) as setup,
        setup.session.get(setup.url + "/x") as response,
    ):
        with pytest.raises(aiohttp.ClientError):
            await response.read()


@pytest.mark.parametrize(
    ("method", "body", "tries"), [("GET", None, 2), ("GET", b"x", 1), ("POST", b"x", 1)]
)
async def test_only_what_is_safe_is_repeated(
    tmp_path: Path, method: str, body: bytes | None, tries: int
) -> None:
    """An upload that may have been taken is not sent twice."""

    async def hang_up(request: web.Request) -> web.StreamResponse:
        await request.read()
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async with (
        engine(hang_up) as one,
        engine(hang_up) as two,
        serving(settings_for(tmp_path, {"a": one, "b": two})) as setup,
        setup.session.request(method, setup.url + "/v1/x", data=body) as response,
    ):
        assert response.status == 502
        assert len(setup.spooled(RequestRejected)) == tries


@pytest.mark.parametrize("target", ["http://other/v1/models", "*"])
async def test_a_target_that_is_no_path_is_refused(tmp_path: Path, target: str) -> None:
    """The agent is no open proxy."""
    async with serving(settings_for(tmp_path, {"e": "http://127.0.0.1:1"})) as setup:
        host, port = setup.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        method = "OPTIONS" if target == "*" else "GET"
        writer.write(f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/chat/completions"])
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
async def test_a_compressed_request_passes_as_it_is(tmp_path: Path, path: str, coding: str) -> None:
    """Its headers say what it is; the engine is the one to unpack it, or to refuse."""
    body = b"\x1f\x8b not to be unpacked"
    seen: list[tuple[str, bytes]] = []

    async def unpacking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append((head.decode().lower(), await reader.readexactly(len(body))))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(unpacking, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    settings = settings_for(tmp_path, {"e": f"http://{host}:{port}"})
    headers = {"Content-Encoding": coding}
    async with server, serving(settings) as setup:
        sent = setup.session.post(setup.url + path, data=body, headers=headers)
        async with sent as response:
            assert response.status == 204
    ((head, got),) = seen
    assert f"content-encoding: {coding}" in head
    assert f"content-length: {len(body)}" in head
    assert got == body


async def test_a_prompt_that_is_read_as_a_request_is_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The client gave a length that is too short, and went on."""
    async with (
        engine(mirror) as address,
        serving(settings_for(tmp_path, {"e": address})) as setup,
    ):
        host, port = setup.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/embeddings HTTP/1.1\r\nHost: e\r\nContent-Length: 2\r\n\r\n{}")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'{"input": "a secret"}\r\n\r\n')
        await reader.read()
        writer.close()
        await writer.wait_closed()
    assert "secret" not in caplog.text
