"""Errors of engines before the first token: another instance answers, and no storm follows."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.integration.agent.parts import (
    Handler,
    chat,
    completion,
    engine,
    saying,
    serving,
    settings_for,
    streaming,
    until,
)
from tests.integration.agent.test_rescue import CHAT, COMPLETIONS, read, set_fault

from gatemesh_agent.rescue.leaving import LOOK_EVERY_S
from gatemesh_common.messages import RequestRejected, Verdict

pytestmark = pytest.mark.integration

BAD, GOOD = "engine-0", "engine-1"
BUSY = b'{"error":{"message":"busy","type":"Service Unavailable","param":null,"code":503}}'
LATE = b"data: " + BUSY + b"\n\ndata: [DONE]\n\n"
GUARDS = ("shield", "rescue")


def busy(status: int = 503, asked: Counter[str] | None = None, name: str = "") -> Handler:
    """Return an engine, or a proxy before one, that has no room."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        if asked is not None:
            asked[name] += 1
        return web.Response(
            body=BUSY, status=status, headers={"Retry-After": "7", "X-Engine": name}
        )

    return answer


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("kind", ["http500", "http503"])
@pytest.mark.parametrize(
    "body",
    [chat(), chat(stream=True), completion(), completion(stream=True)],
    ids=["chat", "chat-streamed", "completion", "completion-streamed"],
)
async def test_a_simulated_engines_error_is_not_seen(
    engines: dict[str, str], tmp_path: Path, guard: str, kind: str, body: dict[str, Any]
) -> None:
    """The answer is a healthy engine's, to the letter."""
    path = CHAT if "messages" in body else COMPLETIONS
    async with serving(settings_for(tmp_path / "a", {GOOD: engines[GOOD]})) as setup:
        expected = await setup.post(path, body)
    set_fault(engines[BAD], fault=kind)
    async with serving(settings_for(tmp_path, engines, guard=guard)) as setup:
        setup.agent.router.enter(GOOD)
        got = await setup.post(path, body)
    assert (got.status, got.headers["X-Gatemesh-Instance"]) == (200, GOOD)
    if body.get("stream"):
        assert read(got.body).text == read(expected.body).text != ""
        assert read(got.body).error is None
    else:
        assert json.loads(got.body)["choices"] == json.loads(expected.body)["choices"]


async def test_observe_shows_it(engines: dict[str, str], tmp_path: Path) -> None:
    """Nothing is withheld there."""
    set_fault(engines[BAD], fault="http500")
    async with serving(settings_for(tmp_path, engines)) as setup:
        setup.agent.router.enter(GOOD)
        got = await setup.post(CHAT, chat())
    assert (got.status, got.headers["X-Gatemesh-Instance"]) == (500, BAD)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
@pytest.mark.parametrize("guard", GUARDS)
async def test_where_all_say_so_the_first_ones_answer_is_given_unchanged(
    tmp_path: Path, guard: str, status: int
) -> None:
    """With its own headers; nobody is asked twice."""
    asked: Counter[str] = Counter()
    async with (
        engine(busy(status, asked, "a")) as one,
        engine(busy(status, asked, "b")) as other,
        serving(settings_for(tmp_path, {"a": one, "b": other}, guard=guard)) as setup,
    ):
        setup.agent.router.enter("b")
        got = await setup.post(CHAT, chat())
    assert (got.status, got.body, got.headers["Retry-After"]) == (status, BUSY, "7")
    assert (got.headers["X-Engine"], got.headers["X-Gatemesh-Instance"]) == ("a", "a")
    assert asked == {"a": 1, "b": 1}


@pytest.mark.parametrize("guard", GUARDS)
async def test_where_the_next_one_is_silent_the_first_ones_answer_is_given(
    tmp_path: Path, guard: str
) -> None:
    """Not a 504 that says less than what is known by then."""

    async def hang(request: web.Request) -> web.StreamResponse:
        await request.read()
        await asyncio.Event().wait()
        raise AssertionError

    async with (
        engine(busy(503, name="a")) as one,
        engine(hang) as other,
        serving(
            settings_for(tmp_path, {"a": one, "b": other}, guard=guard, first_byte_s=0.3)
        ) as setup,
    ):
        setup.agent.router.enter("b")
        got = await setup.post(CHAT, chat())
    assert (got.status, got.body, got.headers["X-Engine"]) == (503, BUSY, "a")


async def test_a_stream_refused_everywhere_ends_as_the_first_one_said(tmp_path: Path) -> None:
    """Status 200 and an error event, as vLLM does it."""
    async with (
        engine(streaming(LATE)) as one,
        engine(streaming(LATE)) as other,
        serving(settings_for(tmp_path, {"a": one, "b": other}, guard="rescue")) as setup,
    ):
        setup.agent.router.enter("b")
        got = await setup.post(CHAT, chat(stream=True))
    assert (got.status, got.body) == (200, LATE)
    assert got.headers["X-Gatemesh-Instance"] == "a"


@pytest.mark.parametrize("guard", GUARDS)
async def test_a_pool_without_room_is_no_storm(tmp_path: Path, guard: str) -> None:
    """Each instance is found out about once in a while; the rest of the answers pass at once."""
    asked: Counter[str] = Counter()
    async with (
        engine(busy(503, asked, "a")) as one,
        engine(busy(503, asked, "b")) as other,
        serving(settings_for(tmp_path, {"a": one, "b": other}, guard=guard, shun_s=60)) as setup,
    ):
        for _ in range(40):
            assert (await setup.post(CHAT, chat())).status == 503
        assert asked.total() <= 42
        together = await asyncio.gather(*(setup.post(CHAT, chat()) for _ in range(40)))
    assert {got.status for got in together} == {503}
    assert asked.total() <= 82


async def test_the_budget_holds_for_errors_too(tmp_path: Path) -> None:
    """Those that come at once are all braked by it."""
    asked: Counter[str] = Counter()
    given: dict[str, Any] = {"guard": "rescue", "rescue_per_minute": 5, "shun_s": 0}
    async with (
        engine(busy(500, asked, "a")) as one,
        engine(busy(500, asked, "b")) as other,
        serving(settings_for(tmp_path, {"a": one, "b": other}, **given)) as setup,
    ):
        got = await asyncio.gather(*(setup.post(CHAT, chat()) for _ in range(30)))
    assert {each.status for each in got} == {500}
    assert asked.total() == 35


async def test_an_error_counts_where_another_answered_and_nobody_is_accused(
    engines: dict[str, str], tmp_path: Path
) -> None:
    """The mesh is told who took over."""
    set_fault(engines[BAD], fault="http500")
    async with serving(settings_for(tmp_path, engines, guard="rescue")) as setup:
        setup.agent.router.enter(GOOD)
        await setup.post(CHAT, chat())
        await setup.verdicts()
        [rejected] = setup.spooled(RequestRejected)
        assert setup.spooled(Verdict) == []
    assert (rejected.instance_id, rejected.cause) == (BAD, "broken")
    assert rejected.rerouted_to == GOOD


@pytest.mark.parametrize("guard", GUARDS)
async def test_a_whole_answer_for_which_nothing_comes_is_asked_elsewhere(
    engines: dict[str, str], tmp_path: Path, guard: str
) -> None:
    """At the latest when the wait for a first byte is over."""
    set_fault(engines[BAD], fault="hang", requests=1)
    async with serving(settings_for(tmp_path, engines, guard=guard, first_byte_s=1)) as setup:
        setup.agent.router.enter(GOOD)
        got = await setup.post(CHAT, chat())
    assert (got.status, got.headers["X-Gatemesh-Instance"]) == (200, GOOD)


async def test_a_whole_answer_is_not_waited_for_where_the_engine_stands_still(
    engines: dict[str, str], tmp_path: Path
) -> None:
    """The watchdog's own generation gets nothing either: that proves it, long before the wait ends.

    The request is aborted there before it is asked elsewhere: nobody is billed for two.
    """
    set_fault(engines[BAD], fault="hang")
    given: dict[str, Any] = {
        "stall_s": 1,
        "stall_first_s": 1,
        "stall_probe_s": 1,
        "rescue_stall_s": 0.5,
        "guard": "rescue",
    }
    async with serving(settings_for(tmp_path, engines, **given)) as setup:
        setup.agent.router.enter(GOOD)
        watching = asyncio.create_task(setup.agent.guarding.stalls.run())
        asking = asyncio.create_task(setup.post(CHAT, chat()))
        await until(lambda: setup.agent.router.in_flight[BAD] == 1)
        async with asyncio.timeout(15 + LOOK_EVERY_S):
            got = await asking
        watching.cancel()
        assert setup.agent.router.in_flight[BAD] == 0
    assert (got.status, got.headers["X-Gatemesh-Instance"]) == (200, GOOD)


@pytest.mark.parametrize("guard", GUARDS)
async def test_a_torn_whole_answer_is_asked_elsewhere(tmp_path: Path, guard: str) -> None:
    """One that cannot be read, or does not say how it ended."""
    fine = b'{"choices":[{"index":0,"message":{"content":"Fine."},"finish_reason":"stop"}]}'
    for torn in (fine[:40], fine.replace(b'"stop"', b"null")):
        async with (
            engine(saying(torn)) as bad,
            engine(saying(fine)) as good,
            serving(settings_for(tmp_path, {"bad": bad, "good": good}, guard=guard)) as setup,
        ):
            setup.agent.router.enter("good")
            got = await setup.post(CHAT, chat())
        assert (got.status, got.body) == (200, fine)
