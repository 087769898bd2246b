"""Prepared answers that no gate objects to, as vLLM writes them."""

import random
from functools import lru_cache
from typing import Any

from benchmarks.agent import compact, http_head
from benchmarks.gate_cost import SHAPES, Shape, synthetic_shape, synthetic_step

from gatemesh_common.gates import TokenStep

HEAD = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "bench"}
SEED = 6
VOCABULARY = 49_152


@lru_cache
def shapes() -> list[Shape]:
    """Return the distributions that tokens are drawn from."""
    rng = random.Random(SEED)
    return [synthetic_shape(rng) for _ in range(SHAPES)]


@lru_cache
def steps(tokens: int) -> list[TokenStep]:
    """Return the tokens of an answer with 20 candidates each."""
    rng = random.Random(SEED)
    return [synthetic_step(rng, shapes()) for _ in range(tokens)]


def entry(step: TokenStep, rng: random.Random) -> dict[str, Any]:
    """Return one token with its candidates, by ids as the agent asks for them."""
    listed = [
        {
            "token": f"token_id:{rng.randrange(VOCABULARY)}",
            "logprob": logprob,
            "bytes": list(step.text.encode() if not rank else b" other%d" % rank),
        }
        for rank, logprob in enumerate(step.top_logprobs)
    ]
    return {**listed[0], "top_logprobs": listed}


def entries(some: list[TokenStep], *, added: bool) -> list[dict[str, Any] | None]:
    """Return the log probabilities of each token; None where none were asked."""
    rng = random.Random(SEED)
    return [entry(step, rng) if added else None for step in some]


def whole(tokens: int, *, added: bool) -> bytes:
    """Return an answer that is not streamed."""
    some = steps(tokens)
    logprobs = {"content": entries(some, added=True)} if added else None
    message = {"role": "assistant", "content": "".join(step.text for step in some)}
    choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "length"}
    usage = {"prompt_tokens": 12, "completion_tokens": tokens, "total_tokens": tokens + 12}
    body = compact({**HEAD, "choices": [choice], "usage": usage})
    return http_head("application/json", f"Content-Length: {len(body)}") + body


def streamed(tokens: int, *, added: bool) -> tuple[bytes, ...]:
    """Return the chunks of a streamed answer; the head is part of the first."""
    some = steps(tokens)
    told = enumerate(zip(some, entries(some, added=added), strict=True), start=1)
    events = [event(step, each, last=number == tokens) for number, (step, each) in told]
    chunks = [chunk(each) for each in events]
    chunks[0] = http_head("text/event-stream", "Transfer-Encoding: chunked") + chunks[0]
    chunks[-1] += chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    return tuple(chunks)


def event(step: TokenStep, told: dict[str, Any] | None, *, last: bool) -> bytes:
    """Return one streamed event."""
    choice = {
        "index": 0,
        "delta": {"content": step.text},
        "logprobs": {"content": [told]} if told else None,
        "finish_reason": "length" if last else None,
        "token_ids": None,
    }
    head = {**HEAD, "object": "chat.completion.chunk"}
    return b"data: " + compact({**head, "choices": [choice]}) + b"\n\n"


def chunk(data: bytes) -> bytes:
    """Return data as one chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)
