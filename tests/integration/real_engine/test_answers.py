"""The real engine as clients and the agent meet it."""

import json
import re
from typing import Any

import pytest
from tests.alike import alike

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]

SEA = "Write one sentence about the sea."
SPRING = "请写一句关于春天的话。"
FLOWER = "Repeat exactly: 😀🌸"
CHANGING = re.compile(rb'"id":"(chatcmpl|cmpl)-[^"]*"|"created":\d+')

CHAT_SHAPES: dict[str, dict[str, Any]] = {
    "english": {},
    "usage": {"stream_options": {"include_usage": True}},
    "stop": {"stop": ["the", "wave"]},
    "token-ids": {"return_token_ids": True},
    "one-token": {"max_tokens": 1},
    "interval": {"stream_interval": 4},
    "logprobs-false": {"logprobs": False},
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", CHAT_SHAPES)
def test_asking_chat_for_logprobs_changes_nothing_else(
    engine: Any, shape: str, *, stream: bool
) -> None:
    """What the agent adds can be taken out again without a trace."""
    body = {"stream": stream, **CHAT_SHAPES[shape]}
    if not stream:
        body.pop("stream_options", None)
    more = {**body, "logprobs": True, "top_logprobs": 20}
    plain, asked = alike(lambda: both(engine.chat(SEA, **body), engine.chat(SEA, **more)))
    assert asked == plain


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_multi_byte_characters_keep_their_chunks(engine: Any, *, stream: bool) -> None:
    """A character spread over several tokens arrives in the same events with logprobs."""
    body = {"stream": stream, "max_tokens": 12}
    more = {**body, "logprobs": True, "top_logprobs": 20}
    plain, asked = alike(lambda: both(engine.chat(FLOWER, **body), engine.chat(FLOWER, **more)))
    assert asked == plain


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_asking_completions_for_logprobs_changes_nothing_else(engine: Any, *, stream: bool) -> None:
    """The same for the older endpoint."""
    body = {"model": "smollm2-135m", "prompt": "The sea is", "temperature": 0, "stream": stream}
    path, more = "/v1/completions", {**body, "logprobs": 20}
    plain, asked = alike(lambda: both(engine.post(path, body), engine.post(path, more)))
    assert asked == plain


def text_of(answer: Any, *, stream: bool) -> str:
    """The text of a chat answer."""
    if not stream:
        return str(answer.json()["choices"][0]["message"]["content"])
    choices = [choice for event in answer.events() for choice in event["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def both(plain: Any, asked: Any) -> tuple[bytes, bytes]:
    """What must be the same of an answer and of one with log-probabilities."""
    return steady(plain.body), without_logprobs(asked.body)


def steady(body: bytes) -> bytes:
    """The body without what differs between any two requests."""
    return CHANGING.sub(b'"-"', body)


def without_logprobs(body: bytes) -> bytes:
    """The body with every logprobs value set to null, written as the engine writes JSON."""
    return steady(b"\n\n".join(_clean(part) for part in body.split(b"\n\n")))


def _clean(part: bytes) -> bytes:
    prefix = b"data: " if part.startswith(b"data: ") else b""
    content = part.removeprefix(prefix)
    if not content.startswith(b"{"):
        return part
    value = json.loads(content)
    for choice in value["choices"]:
        choice["logprobs"] = None
    return prefix + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
