"""Instances that fail: asked elsewhere where that is right, and told plainly where it is not."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.integration.agent.parts import (
    Handler,
    chat,
    engine,
    saying,
    serving,
    settings_for,
    streaming,
    until,
)

from gatemesh_agent.routing import bootstrap
from gatemesh_common.messages import CheckLevel, RequestRejected, TelemetryWindow, Verdict

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
DEAD = "http://127.0.0.1:1"
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
GOOD = (
    b'{"choices":[{"index":0,"message":{"content":"Fine, thank you."},"logprobs":null,'
    b'"finish_reason":"stop"}]}'
)
DRAIN = (
    b'{"error":{"message":"cannot schedule new futures after shutdown",'
    b'"type":"InternalServerError","param":null,"code":500}}'
)
DIED = (
    b'{"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root '
    b'cause.","type":"InternalServerError","param":null,"code":500}}'
)
CAP = (
    b'{"error":{"message":"Requested sample logprobs of 20, which is greater than max allowed: 5 '
    b'(parameter=logprobs, value=20)","type":"BadRequestError","param":"logprobs","code":400}}'
)


async def hang_up(request: web.Request) -> web.StreamResponse:
    """Close the connection without an answer."""
    await request.read()
    assert request.transport is not None
    request.transport.close()
    return web.Response()


@pytest.mark.parametrize(
    ("handler", "cause"),
    [
        pytest.param(None, "unreachable", id="refused"),
        pytest.param(hang_up, "broken", id="reset"),
        pytest.param(saying(DRAIN, 500), "draining", id="draining"),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_failure_before_the_first_byte_is_asked_elsewhere(
    tmp_path: Path,
    handler: Handler | None,
    cause: str,
    stream: bool,  # noqa: FBT001
) -> None:
    """The client sees nothing of it; the mesh does."""
    answer = streaming(EVENT, b"data: [DONE]\n\n") if stream else saying(GOOD)
    async with engine(answer) as good, engine(handler or hang_up) as bad:
        instances = {"bad": bad if handler else DEAD, "good": good}
        async with serving(settings_for(tmp_path, instances, shun_s=0.0)) as setup:
            turns = 0
            while not (rejected := setup.spooled(RequestRejected)):
                got = await setup.post(CHAT, chat(stream=stream))
                assert (got.status, got.headers["X-Gatemesh-Instance"]) == (200, "good")
                turns += 1
                assert turns < 100
    assert {(each.instance_id, each.cause, each.rerouted_to) for each in rejected} == {
        ("bad", cause, "good")
    }


async def test_a_death_under_a_request_is_shown_while_the_instance_serves(tmp_path: Path) -> None:
    """The request itself may be the cause: it must not go round the pool and end every engine."""
    async with (
        engine(saying(DIED, 500)) as bad,
        serving(settings_for(tmp_path, {"bad": bad})) as setup,
    ):
        got = await setup.post(CHAT, chat())
        assert (got.status, got.body) == (500, DIED)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_death_out_of_rotation_is_not_the_clients_business(
    tmp_path: Path,
    stream: bool,  # noqa: FBT001
) -> None:
    """An engine that was stopped under the request has the request asked elsewhere."""
    dead = DIED if not stream else b"data: " + DIED + b"\n\ndata: [DONE]\n\n"
    taken_out = asyncio.Event()

    async def die(request: web.Request) -> web.StreamResponse:
        await taken_out.wait()
        if stream:
            return await streaming(dead)(request)
        return await saying(DIED, 500)(request)

    async with (
        engine(die) as bad,
        engine(saying(GOOD)) as good,
        serving(settings_for(tmp_path, {"bad": bad})) as setup,
    ):
        waiting = asyncio.create_task(setup.post(CHAT, chat(stream=stream)))
        await until(lambda: setup.agent.router.in_flight["bad"] == 1)
        setup.agent.router.view = bootstrap({"good": good})
        taken_out.set()
        got = await waiting
        assert (got.status, got.body) == (200, GOOD)
        assert setup.spooled(RequestRejected)[0].rerouted_to == "good"


async def test_nobody_left_is_said_plainly(tmp_path: Path) -> None:
    """The error has the engine's shape and names the instance."""
    async with serving(settings_for(tmp_path, {"a": DEAD, "b": DEAD})) as setup:
        got = await setup.post(CHAT, chat())
        rejected = setup.spooled(RequestRejected)
    assert got.status == 502
    assert json.loads(got.body)["error"]["code"] == 502
    assert {(each.instance_id, each.rerouted_to) for each in rejected} == {("a", None), ("b", None)}


@pytest.mark.parametrize("path", [CHAT, "/v1/models"])
async def test_an_empty_pool_is_said_plainly(tmp_path: Path, path: str) -> None:
    """503 with the pool's name and when to come back."""
    async with serving(settings_for(tmp_path, {}, pool="pool-x")) as setup:
        got = await setup.post(path, chat())
        [rejected] = setup.spooled(RequestRejected)
    assert got.status == 503
    assert got.headers["Retry-After"] == "1"
    assert "pool-x" in json.loads(got.body)["error"]["message"]
    assert rejected.cause == "no_instance"


async def test_reroutes_are_limited(tmp_path: Path) -> None:
    """A request is not sent round the whole pool."""
    instances = {f"e{number}": DEAD for number in range(6)}
    async with serving(settings_for(tmp_path, instances)) as setup:
        got = await setup.post(CHAT, chat())
        assert got.status == 502
        assert len(setup.spooled(RequestRejected)) == 3


async def test_a_broken_stream_ends_with_an_error_event(tmp_path: Path) -> None:
    """Not a silent cut; the torn event is not shown."""
    handler = streaming(EVENT, EVENT[:20], cut=True)
    async with (
        engine(handler) as address,
        serving(settings_for(tmp_path, {"e": address})) as setup,
    ):
        got = await setup.post(CHAT, chat(stream=True))
        setup.agent.roll_telemetry()
        [window] = setup.spooled(TelemetryWindow)
    first, error, done, rest = got.body.split(b"\n\n")
    assert first + b"\n\n" == EVENT
    assert json.loads(error[6:])["error"]["type"] == "UpstreamBroken"
    assert (done, rest) == (b"data: [DONE]", b"")
    assert window.gates[CheckLevel.L1].skipped == {"cut_short": 1}
    assert window.server_errors == 1


async def test_an_engine_that_is_silent_is_given_up(tmp_path: Path) -> None:
    """504 before the first byte; an error event after it."""

    async def stall(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        if body.get("stream"):
            await response.prepare(request)
            await response.write(EVENT)
        await asyncio.Event().wait()
        return response

    async with engine(stall) as address:
        settings = settings_for(tmp_path, {"e": address}, first_byte_s=0.2, idle_s=0.2)
        async with serving(settings) as setup:
            whole = await setup.post(CHAT, chat())
            streamed = await setup.post(CHAT, chat(stream=True))
    assert whole.status == 504
    assert "0.2 s" in json.loads(whole.body)["error"]["message"]
    assert streamed.status == 200
    assert b"UpstreamBroken" in streamed.body


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_an_engine_with_a_lower_cap_is_asked_for_less(
    tmp_path: Path,
    stream: bool,  # noqa: FBT001
) -> None:
    """The client never learns; the next request asks rightly at once."""
    asked: list[int] = []

    async def capped(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        count = body.get("top_logprobs", 0)
        if "logit_bias" not in body:
            # The agent's own question for the vocabulary is none of the client's.
            asked.append(count)
        if count <= 5:
            return web.Response(body=GOOD, content_type="application/json")
        if not body.get("stream"):
            return web.Response(body=CAP, status=400, content_type="application/json")
        return await streaming(b"data: " + CAP + b"\n\n", b"data: [DONE]\n\n")(request)

    async with (
        engine(capped) as address,
        serving(settings_for(tmp_path, {"e": address})) as setup,
    ):
        for _ in range(2):
            got = await setup.post(CHAT, chat(stream=stream))
            assert (got.status, got.body) == (200, GOOD)
    assert asked == [20, 5, 5]


async def test_an_error_that_may_owe_itself_to_the_added_is_asked_anew(tmp_path: Path) -> None:
    """A validation error that repeats the body must repeat the client's."""

    async def echoing(request: web.Request) -> web.StreamResponse:
        return web.Response(body=await request.read(), status=400)

    async with (
        engine(echoing) as address,
        serving(settings_for(tmp_path, {"e": address})) as setup,
    ):
        got = await setup.post(CHAT, {"messages": 5})
        assert (got.status, json.loads(got.body)) == (400, {"messages": 5})
        assert setup.spooled(Verdict) == []


async def test_a_body_over_the_limit_is_refused(tmp_path: Path, engines: dict[str, str]) -> None:
    """413, with the setting's name; chunked bodies too."""

    async def pieces() -> Any:
        for _ in range(10):
            yield b"x" * 1000

    settings = settings_for(tmp_path, engines, max_body_bytes=5000)
    async with serving(settings) as setup:
        got = await setup.post(CHAT, chat("x" * 6000))
        async with setup.session.post(setup.url + CHAT, data=pieces()) as response:
            chunked = response.status
        small = await setup.post(CHAT, chat())
    assert (got.status, chunked, small.status) == (413, 413, 200)
    assert "GATEMESH_AGENT_MAX_BODY_BYTES" in json.loads(got.body)["error"]["message"]


async def test_a_slow_client_slows_the_engine(tmp_path: Path) -> None:
    """What the client does not read is not piled up in the agent."""
    sent = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        event = EVENT.replace(b"Hi", b"x" * 50_000)
        while True:
            await response.write(event)
            sent += len(event)

    async with (
        engine(flood) as address,
        serving(settings_for(tmp_path, {"e": address})) as setup,
    ):
        response = await setup.session.post(setup.url + CHAT, json=chat(stream=True))
        seen = -1
        while seen != sent:
            seen = sent
            await asyncio.sleep(0.5)
        assert 0 < sent < 64 * 2**20
        response.close()
        await until(lambda: setup.agent.router.in_flight["e"] == 0)


async def test_a_client_that_never_reads_is_dropped(tmp_path: Path) -> None:
    """It does not hold an engine for ever."""
    event = EVENT.replace(b"Hi", b"x" * 500_000)
    async with engine(streaming(*([event] * 60))) as address:
        settings = settings_for(tmp_path, {"e": address}, client_stall_s=0.3)
        async with serving(settings) as setup, aiohttp.ClientSession() as session:
            response = await session.post(setup.url + CHAT, json=chat(stream=True))
            await until(lambda: setup.agent.router.in_flight["e"] == 0)
            with pytest.raises(aiohttp.ClientError):
                await response.read()
