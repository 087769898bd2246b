"""The JSON vLLM sends, in its order of keys: one class per route, streamed and whole. Pure."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from gatemesh_engine_sim.generation import Emission
from gatemesh_engine_sim.intake import Asked
from gatemesh_engine_sim.scoring import Scored
from gatemesh_engine_sim.steps import IdOf, Step

DONE = b"data: [DONE]\n\n"

FINGERPRINT = "vllm-0.32.0-51eab846"

Choice = Sequence[Emission]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What is common to everything sent in answer to one request."""

    request_id: str
    created: int
    asked: Asked
    prompt_scores: Scored | None = None
    """Of every token of the prompt, where they were asked for."""

    @property
    def prompt_ids(self) -> Sequence[int] | None:
        """The prompt's token ids where they were asked for."""
        return self.asked.prompt_ids if self.asked.return_token_ids else None

    def token_ids(self, choice: Choice) -> list[int] | None:
        """The answer's token ids where they were asked for."""
        return [one.step.token_id for one in choice] if self.asked.return_token_ids else None

    def counts(self, completion_tokens: int) -> Json:
        """The usage object of a stream; a whole answer adds null details."""
        prompt_tokens = len(self.asked.prompt_ids)
        return {
            "prompt_tokens": prompt_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "completion_tokens": completion_tokens,
        }


class Wire(Protocol):
    """Writes the answers of one route."""

    def opening(self, index: int) -> bytes:
        """The event before the first token of a choice; empty if the route has none."""

    def event(self, index: int, emission: Emission, offset: int, *, first: bool) -> bytes:
        """The event of one token, whose text begins at `offset`."""

    def usage(self, completion_tokens: int) -> bytes:
        """The event that ends a stream with its token counts."""

    def closing(self, choices: Sequence[Choice]) -> bytes:
        """What ends a stream."""

    def whole(self, choices: Sequence[Choice]) -> bytes:
        """The body of an answer that is not streamed."""


class ChatWire:
    """`/v1/chat/completions`."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._name = f"chatcmpl-{reply.request_id}"
        self._head = _head(reply, self._name, "chat.completion.chunk")

    def opening(self, index: int) -> bytes:
        """The role, and the prompt's ids where asked for."""
        choice = {
            "index": index,
            "delta": {"role": "assistant", "content": ""},
            "logprobs": None,
            "finish_reason": None,
        }
        ids = {"prompt_token_ids": self._reply.prompt_ids, "prompt_text": None}
        return _sse({**self._head, "choices": [choice], **ids})

    def event(self, index: int, emission: Emission, offset: int, *, first: bool) -> bytes:
        """One token's delta."""
        choice = {
            "index": index,
            "delta": {"content": emission.text},
            "logprobs": self._logprobs([emission]),
            **_finish(emission),
            "token_ids": self._reply.token_ids([emission]),
        }
        return _sse({**self._head, "choices": [choice], **_last(self._reply, emission)})

    def usage(self, completion_tokens: int) -> bytes:
        """Counts without the null details that the whole answer has."""
        return _usage_event(self._reply, self._head, completion_tokens)

    def closing(self, choices: Sequence[Choice]) -> bytes:
        """The end mark."""
        return DONE

    def whole(self, choices: Sequence[Choice]) -> bytes:
        """The chat completion object."""
        return orjson.dumps(
            {
                **_head(self._reply, self._name, "chat.completion"),
                "choices": [self._choice(index, choice) for index, choice in enumerate(choices)],
                "service_tier": None,
                "system_fingerprint": FINGERPRINT,
                "usage": _whole_usage(self._reply, choices),
                "prompt_logprobs": None,
                "prompt_token_ids": self._reply.prompt_ids,
                "prompt_text": None,
                "kv_transfer_params": None,
                "ec_transfer_params": None,
                "metrics": None,
            }
        )

    def _choice(self, index: int, choice: Choice) -> Json:
        return {
            "index": index,
            "message": {
                "role": "assistant",
                "content": _text(choice),
                "refusal": None,
                "annotations": None,
                "audio": None,
                "function_call": None,
                "reasoning": None,
            },
            "logprobs": self._logprobs(choice),
            **_finish(choice[-1]),
            "token_ids": self._reply.token_ids(choice),
            "routed_experts": None,
        }

    def _logprobs(self, choice: Choice) -> Json | None:
        count = self._reply.asked.logprobs
        if count is None:
            return None
        id_of = self._reply.asked.id_of
        return {"content": [orjson.Fragment(one.step.chat_logprob(count, id_of)) for one in choice]}


class CompletionWire:
    """`/v1/completions`."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._head = _head(reply, f"cmpl-{reply.request_id}", "text_completion")

    def opening(self, index: int) -> bytes:
        """No such event here."""
        return b""

    def event(self, index: int, emission: Emission, offset: int, *, first: bool) -> bytes:
        """One token's text."""
        choice = {
            "index": index,
            "text": emission.text,
            "logprobs": self._logprobs([emission], offset),
            "finish_reason": emission.finish_reason,
            "stop_reason": emission.stop_reason,
            "prompt_token_ids": self._reply.prompt_ids if first else None,
            "token_ids": self._reply.token_ids([emission]),
        }
        return _sse({**self._head, "choices": [choice], **_last(self._reply, emission)})

    def usage(self, completion_tokens: int) -> bytes:
        """Counts of the whole stream."""
        return _usage_event(self._reply, self._head, completion_tokens)

    def closing(self, choices: Sequence[Choice]) -> bytes:
        """The end mark."""
        return DONE

    def whole(self, choices: Sequence[Choice]) -> bytes:
        """The text completion object."""
        return orjson.dumps(
            {
                **self._head,
                "choices": [self._choice(index, choice) for index, choice in enumerate(choices)],
                "service_tier": None,
                "system_fingerprint": FINGERPRINT,
                "usage": _whole_usage(self._reply, choices),
                "kv_transfer_params": None,
                "ec_transfer_params": None,
                "metrics": None,
            }
        )

    def _choice(self, index: int, choice: Choice) -> Json:
        return {
            "index": index,
            "text": _text(choice),
            "logprobs": self._logprobs(choice, 0),
            **_finish(choice[-1]),
            "token_ids": self._reply.token_ids(choice),
            "prompt_logprobs": self._reply.prompt_scores,
            "prompt_token_ids": self._reply.prompt_ids,
            "routed_experts": None,
        }

    def _logprobs(self, choice: Choice, offset: int) -> Json | None:
        count = self._reply.asked.logprobs
        if count is None:
            return None
        steps = [one.step for one in choice]
        return completion_logprobs(steps, count, offset, self._reply.asked.id_of)


def stream_events(wire: Wire, choices: Sequence[Choice]) -> Iterator[tuple[int, bytes]]:
    """All events but usage and end, each with the place of its token; choices take turns."""
    offsets = [0] * len(choices)
    for place in range(max(map(len, choices))):
        for index, choice in enumerate(choices):
            if place < len(choice):
                opening = b"" if place else wire.opening(index)
                event = wire.event(index, choice[place], offsets[index], first=not place)
                yield place, opening + event
                offsets[index] += len(choice[place].text)


def completion_logprobs(
    steps: Sequence[Step], count: int, offset: int, id_of: IdOf | None = None
) -> Json:
    """The four parallel lists; candidates that read alike share one entry."""
    names = [step.name(id_of) for step in steps]
    return {
        "text_offset": list(itertools.accumulate(map(len, names[:-1]), initial=offset)),
        "token_logprobs": [step.logprob for step in steps],
        "tokens": names,
        "top_logprobs": [dict(step.named(max(count, 1), id_of)) for step in steps],
    }


def _head(reply: Reply, name: str, kind: str) -> Json:
    return {"id": name, "object": kind, "created": reply.created, "model": reply.asked.model}


def _sse(event: Json) -> bytes:
    return b"data: " + orjson.dumps(event) + b"\n\n"


def _last(reply: Reply, emission: Emission) -> Json:
    # Where a usage event follows, the fingerprint moves into it.
    shown = emission.finish_reason is not None and not reply.asked.include_usage
    return {"system_fingerprint": FINGERPRINT} if shown else {}


def _usage_event(reply: Reply, head: Json, completion_tokens: int) -> bytes:
    usage = {"usage": reply.counts(completion_tokens), "system_fingerprint": FINGERPRINT}
    return _sse({**head, "choices": [], **usage})


def _whole_usage(reply: Reply, choices: Sequence[Choice]) -> Json:
    details = {"prompt_tokens_details": None, "completion_tokens_details": None}
    return {**reply.counts(sum(map(len, choices))), **details}


def _finish(emission: Emission) -> Json:
    """The finish reason; the stop reason joins it at the end only."""
    if emission.finish_reason is None:
        return {"finish_reason": None}
    return {"finish_reason": emission.finish_reason, "stop_reason": emission.stop_reason}


def _text(choice: Choice) -> str:
    return "".join(one.text for one in choice)
