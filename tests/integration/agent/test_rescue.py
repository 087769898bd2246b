"""Rescue: the real agent before two engines, of which one goes bad; nothing bad is seen."""

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.integration.agent.conftest import start_engine
from tests.integration.agent.parts import (
    Got,
    Setup,
    chat,
    completion,
    engine,
    serving,
    settings_for,
    streaming,
)
from tests.integration.agent.test_program import listed, running

from gatemesh_common.messages import Attribution, InstanceState, Reason

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
LONG = 60
TELL = {"X-Gatemesh-Rescue": "tell"}
ZERO = ("nan", "flat", "stuck", "bang", "replacement", "special", "wrong_choice", "whitespace")
BAD, GOOD = "engine-0", "engine-1"
SAID = (
    b'data: {"id":"a","model":"m","choices":[{"index":0,"delta":{"content":"Well."},'
    b'"finish_reason":"stop"}]}\n\n'
)


@dataclass
class Read:
    """What a client makes of a stream."""

    text: str = ""
    ids: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    roles: int = 0
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    told: dict[str, Any] | None = None
    done: int = 0
    offsets: list[int] = field(default_factory=list)
    logprobs: int = 0


def read(body: bytes) -> Read:
    """Read a stream as clients do."""
    got = Read()
    for line in body.split(b"\n"):
        if line.startswith(b": gatemesh-rescue "):
            got.told = json.loads(line[18:])
        elif line == b"data: [DONE]":
            got.done += 1
        elif line.startswith(b"data: {"):
            take(got, json.loads(line[6:]))
    return got


def take(got: Read, event: dict[str, Any]) -> None:
    """Take in one event."""
    if "error" in event:
        got.error = event["error"]
        return
    got.ids.add(event["id"])
    got.models.add(event["model"])
    got.usage = event.get("usage") or got.usage
    for choice in event["choices"]:
        delta = choice.get("delta", {})
        got.roles += "role" in delta
        got.text += delta.get("content") or choice.get("text") or ""
        figures = choice.get("logprobs") or {}
        got.logprobs += len(figures.get("content") or figures.get("tokens") or ())
        got.offsets += figures.get("text_offset") or []
        if choice["finish_reason"] is not None:
            got.reasons.append(choice["finish_reason"])


def set_fault(address: str, **fault: Any) -> None:
    """Have a simulated engine go wrong from now on."""
    request = urllib.request.Request(  # noqa: S310
        f"{address}/sim/fault",
        data=json.dumps(fault).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10):  # noqa: S310
        pass


@asynccontextmanager
async def rescuing(folder: Path, engines: dict[str, str], **more: Any) -> AsyncIterator[Setup]:
    """Run an agent that rescues; the bad engine is asked first."""
    given = {"guard": "rescue", "learn_vocab_sizes": False, "rescue_stall_s": 0.5, **more}
    async with serving(settings_for(folder, engines, **given)) as setup:
        # A request that seems to be under way there has the others go to the bad one.
        setup.agent.router.enter(GOOD)
        yield setup


async def ask(setup: Setup, path: str = CHAT, body: dict[str, Any] | None = None) -> Got:
    """Ask for a stream."""
    asked = chat(stream=True, max_tokens=LONG) if body is None else body
    return await setup.post(path, asked, **TELL)


@pytest.fixture
def good_only(engines: dict[str, str]) -> dict[str, str]:
    """Return one clean engine alone."""
    return {GOOD: engines[GOOD]}


async def uncut(folder: Path, good: dict[str, str], path: str, body: dict[str, Any]) -> Read:
    """Return what a healthy engine answers."""
    async with serving(settings_for(folder, good, learn_vocab_sizes=False)) as setup:
        return read((await setup.post(path, body)).body)


@pytest.mark.parametrize("after", [0, 1, 13])
@pytest.mark.parametrize("kind", ZERO)
async def test_no_bad_token_is_seen_and_the_answer_is_the_uncut_one(
    engines: dict[str, str], good_only: dict[str, str], tmp_path: Path, kind: str, after: int
) -> None:
    """One stream, one id, one role, one end, the usage of one answer."""
    body = chat(stream=True, max_tokens=LONG, stream_options={"include_usage": True})
    whole = await uncut(tmp_path / "a", good_only, CHAT, body)
    set_fault(engines[BAD], fault=kind, after_tokens=after)
    async with rescuing(tmp_path, engines) as setup:
        got = await ask(setup, CHAT, body)
    seen = read(got.body)
    assert got.headers["X-Gatemesh-Instance"] == BAD
    assert seen.text == whole.text
    assert (len(seen.ids), len(seen.models), seen.roles, seen.done) == (1, 1, 1, 1)
    assert seen.reasons == whole.reasons
    assert seen.usage == whole.usage
    assert seen.told is not None
    assert (seen.told["from"], seen.told["to"], seen.told["cause"]) == (BAD, GOOD, "gate")
    assert seen.told["by"] == ("ids" if after else "restart")


@pytest.mark.parametrize(
    ("kind", "after", "cause"),
    [
        ("disconnect", 0, None),
        ("disconnect", 9, "broken"),
        ("hang", 0, None),
        ("hang", 9, "stalled"),
        ("http500", 9, "error"),
    ],
)
async def test_an_engine_that_breaks_off_or_stands_still_is_left(
    engines: dict[str, str], tmp_path: Path, kind: str, after: int, cause: str | None
) -> None:
    """The client gets the whole answer, as if nothing had been."""
    body = chat(stream=True, max_tokens=LONG)
    whole = await uncut(tmp_path / "a", {GOOD: engines[GOOD]}, CHAT, body)
    set_fault(engines[BAD], fault=kind, after_tokens=after)
    async with rescuing(tmp_path, engines, stall_first_s=0.5) as setup:
        seen = read((await ask(setup, CHAT, body)).body)
    assert seen.text == whole.text
    assert seen.reasons == whole.reasons
    assert (seen.told or {}).get("cause") == cause


async def test_the_only_engine_is_waited_for_however_long_its_prompt_is(tmp_path: Path) -> None:
    """Nobody else could answer; a client that is sent away comes back with the same prompt."""

    async def slow(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(1.5)
        return await streaming(SAID, b"data: [DONE]\n\n")(request)

    async with engine(slow) as only, rescuing(tmp_path, {GOOD: only}, stall_first_s=0.2) as setup:
        got = await setup.post(CHAT, chat(stream=True))
    assert (got.status, read(got.body).text) == (200, "Well.")


async def test_completions_are_continued_too(
    engines: dict[str, str], good_only: dict[str, str], tmp_path: Path
) -> None:
    """With the client's own log probabilities and their offsets."""
    body = completion(stream=True, max_tokens=LONG, logprobs=3)
    whole = await uncut(tmp_path / "a", good_only, COMPLETIONS, body)
    set_fault(engines[BAD], fault="nan", after_tokens=9)
    async with rescuing(tmp_path, engines) as setup:
        seen = read((await ask(setup, COMPLETIONS, body)).body)
    assert seen.text == whole.text
    assert seen.logprobs == whole.logprobs
    assert seen.offsets == whole.offsets
    assert len(seen.ids) == 1


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"stop": ["nothing of the kind"]}, id="stop"),
        pytest.param({"logprobs": True, "top_logprobs": 2}, id="own-logprobs"),
        pytest.param({"unknown_field": 1}, id="unknown-field"),
    ],
)
async def test_where_ids_would_not_mean_the_same_the_answer_goes_on_by_text(
    engines: dict[str, str], good_only: dict[str, str], tmp_path: Path, more: dict[str, Any]
) -> None:
    """The other engine is given the beginning of its own turn."""
    body = chat(stream=True, max_tokens=LONG, **more)
    whole = await uncut(tmp_path / "a", good_only, CHAT, body)
    set_fault(engines[BAD], fault="stuck", after_tokens=11)
    async with rescuing(tmp_path, engines) as setup:
        seen = read((await ask(setup, CHAT, body)).body)
    assert seen.told is not None
    assert seen.told["by"] == "text"
    assert seen.text == whole.text
    assert seen.roles == 1


async def test_without_log_probabilities_text_alone_raises_doubts(
    engines: dict[str, str], good_only: dict[str, str], tmp_path: Path
) -> None:
    """The flood is held from its first sign on."""
    body = chat(stream=True, max_tokens=LONG)
    whole = await uncut(tmp_path / "a", good_only, CHAT, body)
    set_fault(engines[BAD], fault="bang", after_tokens=11)
    async with rescuing(tmp_path, engines, top_logprobs=0) as setup:
        seen = read((await ask(setup, CHAT, body)).body)
    assert seen.told is not None
    assert (seen.told["by"], seen.told["reason"]) == ("text", "repetition")
    assert seen.text == whole.text


@pytest.mark.parametrize(
    ("more", "code"),
    [
        pytest.param({"response_format": {"type": "json_object"}}, "structured_output", id="json"),
        pytest.param({"n": 2, "temperature": 1}, "several_choices", id="n"),
        pytest.param(
            {"logprobs": True, "top_logprobs": 2, "seed": 7}, "logprobs_with_seed", id="seed"
        ),
        pytest.param({"frequency_penalty": 0.5}, "penalties", id="penalties"),
    ],
)
async def test_where_meaning_could_change_the_stream_ends_with_an_error(
    engines: dict[str, str], tmp_path: Path, more: dict[str, Any], code: str
) -> None:
    """A clear one, with a code; nothing bad before it, nothing spliced behind it."""
    set_fault(engines[BAD], fault="nan", after_tokens=4)
    async with rescuing(tmp_path, engines) as setup:
        seen = read((await ask(setup, CHAT, chat(stream=True, max_tokens=LONG, **more))).body)
    assert seen.error is not None
    assert seen.error["code"] == f"rescue_{code}"
    assert BAD in seen.error["message"]
    assert (seen.told, seen.done, seen.reasons) == (None, 1, [])


async def test_nothing_shown_yet_is_asked_anew_whatever_it_is(
    engines: dict[str, str], good_only: dict[str, str], tmp_path: Path
) -> None:
    """A grammar begins anew where its client has seen nothing."""
    body = chat(stream=True, max_tokens=LONG, response_format={"type": "json_object"})
    whole = await uncut(tmp_path / "a", good_only, CHAT, body)
    set_fault(engines[BAD], fault="nan")
    async with rescuing(tmp_path, engines) as setup:
        seen = read((await ask(setup, CHAT, body)).body)
    assert seen.text == whole.text
    assert seen.error is None


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
async def test_other_routes_begin_anew_or_end_with_an_error(
    engines: dict[str, str], tmp_path: Path, path: str
) -> None:
    """Their events number and repeat what was said, so they are not continued."""
    body = {"model": "sim", "stream": True, "temperature": 0}
    if path == "/v1/responses":
        body |= {"input": "Tell me about the sea.", "max_output_tokens": LONG}
    else:
        body |= {"messages": chat()["messages"], "max_tokens": LONG}
    async with rescuing(tmp_path, engines) as setup:
        set_fault(engines[BAD], fault="special", after_tokens=0)
        anew = await ask(setup, path, body)
        set_fault(engines[BAD], fault="special", after_tokens=20)
        cut = await ask(setup, path, body)
    assert b"<|im" not in anew.body + cut.body
    assert anew.headers["X-Gatemesh-Instance"] == GOOD
    assert b"event: error" not in anew.body
    assert cut.body.count(b"event: error") == 1
    assert b"not continued" in cut.body


async def test_bad_everywhere_is_the_requests_fault(
    engines: dict[str, str], tmp_path: Path
) -> None:
    """Nobody is accused; hard proof ends the stream, with nothing bad in it."""
    for address in engines.values():
        set_fault(address, fault="nan", after_tokens=6)
    async with rescuing(tmp_path, engines) as setup:
        seen = read((await ask(setup)).body)
        verdicts = await setup.verdicts()
    assert seen.error is not None
    assert seen.error["code"] == "rescue_bad_everywhere"
    assert "will not help" in seen.error["message"]
    assert {each.attribution for each in verdicts} == {Attribution.REQUEST}


async def test_clean_elsewhere_is_evidence_and_nobody_is_asked_twice(
    engines: dict[str, str], tmp_path: Path
) -> None:
    """The continuation is the second opinion."""
    set_fault(engines[BAD], fault="nan", after_tokens=6)
    async with rescuing(tmp_path, engines) as setup:
        await ask(setup)
        verdicts = [each for each in await setup.verdicts() if each.reason is Reason.NAN_LOGITS]
    [verdict] = verdicts
    assert verdict.instance_id == BAD
    assert verdict.attribution is Attribution.INSTANCE
    assert verdict.details["attributed_by"] == "heard"


async def test_soft_everywhere_passes(engines: dict[str, str], tmp_path: Path) -> None:
    """Two instances that are only doubted speak for the request: its answer is given."""
    for address in engines.values():
        set_fault(address, fault="special", after_tokens=6)
    async with rescuing(tmp_path, engines, top_logprobs=0) as setup:
        seen = read((await ask(setup)).body)
    assert seen.error is None
    assert seen.reasons == ["length"]


async def test_a_budget_that_is_used_up_cuts_only_what_is_proven(
    engines: dict[str, str], tmp_path: Path
) -> None:
    """A storm is not fed; soft evidence passes then, proof ends the stream."""
    async with rescuing(tmp_path, engines, rescue_per_minute=0) as setup:
        set_fault(engines[BAD], fault="special", after_tokens=6)
        soft = read((await ask(setup)).body)
        set_fault(engines[BAD], fault="nan", after_tokens=6)
        hard = read((await ask(setup)).body)
    assert soft.error is None
    assert hard.error is not None
    assert hard.error["code"] == "rescue_budget"


async def test_an_ejected_instance_is_left_in_mid_stream_and_a_drained_one_is_not(
    engines: dict[str, str], tmp_path: Path
) -> None:
    """Eject means at once; a drain lets running requests end."""
    body = chat(stream=True, max_tokens=LONG)
    for state, moved in ((InstanceState.EJECTED, True), (InstanceState.DRAINING, False)):
        events = asyncio.Event()
        async with (
            engine(slow_after(events)) as slow,
            rescuing(
                tmp_path / state, {BAD: slow, GOOD: engines[GOOD]}, rescue_stall_s=3600
            ) as setup,
        ):
            asking = asyncio.create_task(ask(setup, CHAT, body))
            await asyncio.wait_for(events.wait(), 10)
            setup.agent.router.view = taken_out(setup, state)
            seen = read((await asking).body)
        assert (seen.told or {}).get("cause") == ("ejected" if moved else None)
        assert seen.done == 1


def taken_out(setup: Setup, state: InstanceState) -> Any:
    """Return the table in which the bad instance is in a state out of rotation."""
    view = setup.agent.router.view
    changed = tuple(
        one.model_copy(update={"state": state, "in_rotation": False})
        if one.instance_id == BAD
        else one
        for one in view.instances
    )
    return type(view)(view.version + 1, view.timestamp, changed)


def slow_after(said: asyncio.Event) -> Any:
    """Return an engine that says a few words, and a second later the rest."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "sim"}

    def event(content: str, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": {"content": content}, "finish_reason": reason}
        return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(event("The sea ") + event("is wide"))
        said.set()
        await asyncio.sleep(1.2)
        await response.write(event(" and deep.", "stop") + b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    return answer


async def test_the_program_loses_no_stream_of_an_engine_that_is_killed(
    engines: dict[str, str], tmp_path: Path
) -> None:
    """All of them come to their own end, by the other engine."""
    victim, address = await asyncio.to_thread(start_engine, BAD, "--tokens-per-s", "60")
    both = {BAD: address, GOOD: engines[GOOD]}
    bodies = [chat(f"Tell me about {one}, length 200.", stream=True, max_tokens=80) for one in MANY]
    try:
        with running(
            tmp_path,
            GATEMESH_AGENT_GUARD="rescue",
            GATEMESH_AGENT_LEARN_VOCAB_SIZES="false",
            GATEMESH_AGENT_INSTANCES=listed(both),
        ) as program:
            begun = [asyncio.Event() for _ in bodies]
            asking = [
                asyncio.create_task(stream_of(program.url, *pair))
                for pair in zip(bodies, begun, strict=True)
            ]
            async with asyncio.timeout(60):
                await asyncio.gather(*(each.wait() for each in begun))
            await asyncio.to_thread(victim.kill)
            streams = [read(body) for body in await asyncio.gather(*asking)]
            direct = [read(await stream_of(engines[GOOD], body)) for body in bodies]
    finally:
        victim.kill()
        victim.wait()
    assert [one.text for one in streams] == [one.text for one in direct]
    assert {(one.error is None, one.done, tuple(one.reasons)) for one in streams} <= {
        (True, 1, ("stop",)),
        (True, 1, ("length",)),
    }
    assert any(one.told is not None for one in streams)


MANY = ("rivers", "trees", "towns", "songs", "ships", "stars", "bread", "clocks")


async def stream_of(url: str, body: dict[str, Any], begun: asyncio.Event | None = None) -> bytes:
    """Return what a client gets; say when there is text."""
    got = b""
    async with (
        aiohttp.ClientSession() as session,
        session.post(url + CHAT, json=body, headers=TELL) as response,
    ):
        async for piece in response.content.iter_any():
            got += piece
            if begun is not None and read(got[: got.rfind(b"\n\n") + 2]).text:
                begun.set()
    return got
