"""How the lab's client reads answers, and how its agents find their engines."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import test_utils, web
from benchmarks import rescuing
from benchmarks.rescuing import CHAT, COMPLETIONS, Program, ask, body_of, store_routing, word_of

STREAM = (
    b'data: {"id": "a", "choices": [{"delta": {"role": "assistant", "content": ""}}]}\n\n'
    b'data: {"id": "a", "choices": [{"delta": {"content": "Hi"}}]}\n\n'
    b'data: {"id": "a", "choices": [{"delta": {"content": ""}, "finish_reason": "stop"}]}\n\n'
    b'data: {"id": "a", "choices": [], "usage": {"completion_tokens": 2}}\n\n'
    b"data: [DONE]\n\n"
)
ERROR = b'data: {"error": {"type": "RescueRefused", "code": "rescue_budget"}}\n\ndata: [DONE]\n\n'


async def answered(body: bytes, kind: str, status: int = 200) -> rescuing.Read:
    """Return what the client makes of an engine that always says the same."""

    async def handler(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=body, status=status, headers={"Content-Type": kind})

    application = web.Application()
    application.router.add_post("/", handler)
    server = test_utils.TestServer(application)
    await server.start_server()
    begun = asyncio.Event()
    async with aiohttp.ClientSession() as session:
        read = await ask(session, str(server.make_url("/")), {}, begun.set)
    await server.close()
    assert begun.is_set() == kind.startswith("text")
    return read


async def test_a_stream_is_read_to_the_letter() -> None:
    """Text, reason, end, id, usage, and the tokens without text."""
    read = await answered(STREAM, "text/event-stream")
    assert (read.text, read.finish, read.ended, read.ids) == ("Hi", "stop", True, {"a"})
    assert (read.silent_events, read.usage["completion_tokens"]) == (1, 2)
    assert read.is_whole


async def test_errors_are_told_by_type_and_code() -> None:
    """In a stream and whole; neither is an answer."""
    read = await answered(ERROR, "text/event-stream")
    assert (read.error, read.is_whole) == ("RescueRefused rescue_budget", False)
    read = await answered(b"oops", "application/json", 502)
    assert (read.status, read.error, read.is_whole) == (502, "unreadable", False)


async def test_a_whole_answer_has_its_end() -> None:
    """A completion's text is read as a chat's."""
    whole = {"id": "a", "choices": [{"text": "Hi", "finish_reason": "length"}]}
    read = await answered(json.dumps(whole).encode(), "application/json")
    assert (read.text, read.finish, read.is_whole) == ("Hi", "length", True)


def test_words_hold_no_number() -> None:
    """And each is another one."""
    words = {word_of(number) for number in range(2_000)}
    assert len(words) == 2_000
    assert not any(letter.isdigit() for word in words for letter in word)


def test_the_agent_finds_its_engines(tmp_path: Path) -> None:
    """The stored table has the victim first by its weight."""
    engines = [Program(f"engine-{number}", (), 8000 + number) for number in range(2)]
    store_routing(tmp_path, "agent", engines, (1.0, 0.001))
    table: dict[str, Any] = json.loads(
        (tmp_path / "agent" / "spool" / "routing-agent.json").read_text()
    )
    assert [one["weight"] for one in table["instances"]] == [1.0, 0.001]
    assert table["instances"][1]["base_url"] == "http://127.0.0.1:8001"


def test_bodies_of_both_routes() -> None:
    """Greedy, with their own way to ask."""
    chat = body_of(CHAT, "Why?", 5, stream=True)
    plain = body_of(COMPLETIONS, "Why?", 5, stream=False)
    assert (chat["messages"][0]["content"], plain["prompt"]) == ("Why?", "Why?")
    assert chat["temperature"] == plain["temperature"] == 0
