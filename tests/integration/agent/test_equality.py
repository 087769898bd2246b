"""A client of the agent gets what it would have got from the engine, byte for byte."""

import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.integration.agent.parts import chat, completion, serving, settings_for

pytestmark = pytest.mark.integration

CHANGING = re.compile(rb'"(id|created|created_at|item_id)":("[^"]*"|\d+)')

CHATS: dict[str, dict[str, Any]] = {
    "plain": {},
    "chinese": {"messages": [{"role": "user", "content": "用中文介绍一下大海。"}]},
    "usage": {"stream_options": {"include_usage": True}},
    "stop": {"stop": ["the", "and"]},
    "ids": {"return_token_ids": True},
    "n": {"n": 3, "temperature": 1, "seed": 7},
    "logprobs-false": {"logprobs": False},
    "logprobs-null": {"logprobs": None},
    "own-logprobs": {"logprobs": True, "top_logprobs": 3},
    "own-logprobs-0": {"logprobs": True},
    "top-without-logprobs": {"top_logprobs": 3},
    "too-many": {"logprobs": True, "top_logprobs": 21},
    "no-model": {"model": "nope"},
    "too-long": {"max_tokens": 100_000},
    "no-messages": {"messages": None},
    "json": {"response_format": {"type": "json_object"}},
    "unknown": {"priority": 3, "vendor_field": {"a": [1, 2]}},
}
COMPLETIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "chinese": {"prompt": "大海"},
    "usage": {"stream_options": {"include_usage": True}},
    "stop": {"stop": "the"},
    "ids": {"return_token_ids": True},
    "n": {"n": 2, "temperature": 1},
    "own-logprobs": {"logprobs": 3},
    "own-logprobs-0": {"logprobs": 0},
    "echo": {"echo": True},
    "no-prompt": {"prompt": None},
}
LOGPROBS = ["message.output_text.logprobs"]
RESPONSES: dict[str, dict[str, Any]] = {
    "plain": {},
    "chinese": {"input": [{"role": "user", "content": "用中文介绍一下大海。"}]},
    "instructions": {"instructions": "Be brief."},
    "own-logprobs": {"include": LOGPROBS, "top_logprobs": 3},
    "own-logprobs-0": {"include": LOGPROBS},
    "top-without-logprobs": {"top_logprobs": 3},
    "no-model": {"model": "nope"},
    "json": {"text": {"format": {"type": "json_object"}}},
    "no-input": {"input": None},
}
MESSAGES: dict[str, dict[str, Any]] = {
    "plain": {},
    "system": {"system": "Be brief."},
    "stop": {"stop_sequences": ["the", "and"]},
    "no-model": {"model": "nope"},
    "too-long": {"max_tokens": 100_000},
}
RESPONSE = {"model": "sim", "input": "Tell me about the sea.", "max_output_tokens": 24}
CASES = [
    *(("/v1/responses", name, RESPONSE | more) for name, more in RESPONSES.items()),
    *(("/v1/messages", name, chat(**more)) for name, more in MESSAGES.items()),
    *(("/v1/chat/completions", name, chat(**more)) for name, more in CHATS.items()),
    *(("/v1/completions", name, completion(**more)) for name, more in COMPLETIONS.items()),
]


def settled(body: bytes) -> bytes:
    """Return a body without what differs between two equal requests."""
    return CHANGING.sub(rb'"\1":0', body)


async def ask(url: str, path: str, body: dict[str, Any]) -> tuple[int, str | None, bytes]:
    """Return status, content type and settled body."""
    async with aiohttp.ClientSession() as session, session.post(url + path, json=body) as response:
        return response.status, response.headers.get("Content-Type"), settled(await response.read())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("path", "body"),
    [pytest.param(path, body, id=f"{path.split('/')[2]}-{name}") for path, name, body in CASES],
)
async def test_same_bytes_as_direct(
    tmp_path: Path,
    engines: dict[str, str],
    path: str,
    body: dict[str, Any],
    stream: bool,  # noqa: FBT001
) -> None:
    """Text, errors, usage, unknown fields and the client's own log probabilities."""
    asked = body | {"stream": stream}
    address = engines["engine-0"]
    async with serving(settings_for(tmp_path, {"engine-0": address})) as setup:
        assert await ask(setup.url, path, asked) == await ask(address, path, asked)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"\xff", b'{"messages":[{"content":"\\ud800"}]}']
)
async def test_odd_bodies_are_the_engines_to_refuse(
    tmp_path: Path, engines: dict[str, str], raw: bytes
) -> None:
    """The agent adds no opinion of its own."""
    address = engines["engine-0"]
    path = "/v1/chat/completions"
    headers = {"Content-Type": "application/json"}
    async with serving(settings_for(tmp_path, {"engine-0": address})) as setup:
        got = []
        for url in (setup.url, address):
            async with setup.session.post(url + path, data=raw, headers=headers) as response:
                got.append((response.status, settled(await response.read())))
    assert got[0] == got[1]


async def test_streamed_events_come_one_by_one(tmp_path: Path, engines: dict[str, str]) -> None:
    """The same events in the same order, each valid on its own."""
    asked = chat(stream=True)
    async with serving(settings_for(tmp_path, engines)) as setup:
        got = await setup.post("/v1/chat/completions", asked)
    events = got.body.split(b"\n\n")
    assert events[-2:] == [b"data: [DONE]", b""]
    assert all(json.loads(event[6:])["choices"][0]["logprobs"] is None for event in events[:-2])


async def test_log_probabilities_refused_in_a_stream_leave_no_trace(
    tmp_path: Path, engines: dict[str, str]
) -> None:
    """An engine that allows fewer than ours announces a response and breaks off."""
    address, asked = engines["engine-0"], RESPONSE | {"stream": True, "temperature": 0}
    settings = settings_for(tmp_path, {"engine-0": address}, top_logprobs=21)
    async with serving(settings) as setup:
        assert await ask(setup.url, "/v1/responses", asked) == await ask(
            address, "/v1/responses", asked
        )
