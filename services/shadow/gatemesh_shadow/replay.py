"""Puts a sampled request to another instance: what to send, and how to read the answer. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from gatemesh_common.gates import CUT_BY_LIMIT
from gatemesh_common.messages import ShadowSample
from gatemesh_shadow.errors import NotReplayableError, ReplicaBrokenError
from gatemesh_shadow.splits import Token

Body = dict[str, Any]

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
TEMPLATE_FIELDS = (
    *("tools", "chat_template", "chat_template_kwargs", "documents"),
    *("add_generation_prompt", "continue_final_message", "add_special_tokens"),
)
"""Of a chat request, what shapes its prompt."""
DROPPED_FIELDS = (
    *("stream", "stream_options", "n", "logprobs", "top_logprobs", "prompt_logprobs", "echo"),
    *("user", "request_id", "priority", "vllm_xargs", "kv_transfer_params", "return_token_ids"),
    *("best_of", "stream_interval", "logprob_token_ids"),
)
"""Of a request, what is not for another instance."""
TOP = 5
"""Candidates asked for with the second answer; a near-tie is among them."""
ID_PREFIX = "token_id:"


@dataclass(frozen=True, slots=True)
class SecondAnswer:
    """What a healthy instance said to the same request."""

    text: str
    tool_calls: tuple[Mapping[str, Any], ...]
    tokens: tuple[Token, ...]
    """Empty where the instance told no ids."""
    cut: bool = False
    """True when it ended because of its length."""


@dataclass(frozen=True, slots=True)
class PromptScores:
    """Log probabilities (nats) of an answer's tokens, and of the likeliest one at each."""

    chosen: tuple[float, ...]
    favourite: tuple[float, ...]
    pieces: tuple[str, ...] = ()
    """Texts of the answer's tokens; empty ones where the engine does not tell them."""
    favourites: tuple[str, ...] = ()
    """Texts of the likeliest tokens."""


def prompt_ids(request: Mapping[str, Any]) -> list[int] | None:
    """The prompt of a completion that was given as token ids."""
    prompt = request.get("prompt")
    if isinstance(prompt, list) and prompt and all(type(one) is int for one in prompt):
        return list(prompt)
    return None


def tokenize_body(path: str, request: Mapping[str, Any]) -> Body:
    """What `/tokenize` is asked for the request's prompt.

    Raises:
        NotReplayableError: the route or the content has no such prompt.
    """
    model = {"model": request["model"]} if "model" in request else {}
    if path == COMPLETIONS:
        return {**model, "prompt": _plain_prompt(request)}
    messages = request.get("messages")
    if path != CHAT:
        raise NotReplayableError("route")
    if not isinstance(messages, list) or not all(map(_is_text, messages)):
        raise NotReplayableError("content")
    shaping = {name: request[name] for name in TEMPLATE_FIELDS if name in request}
    return {"add_generation_prompt": True, **model, "messages": messages, **shaping}


def replayable(sample: ShadowSample) -> tuple[str, Mapping[str, Any]]:
    """Path and request of a sample in a form that any instance takes: chat or completion.

    Raises:
        NotReplayableError: there is no such form.
    """
    if sample.path in (CHAT, COMPLETIONS):
        return sample.path, sample.request
    system, messages = SYSTEM_FIELDS.get(sample.path, (None, None))
    if system is None or messages is None or sample.request.get("tools"):
        raise NotReplayableError("route")
    said = sample.request.get(messages)
    turns = [{"role": "user", "content": said}] if isinstance(said, str) else said
    if not isinstance(turns, list):
        raise NotReplayableError("content")
    opening = _turn("system", sample.request.get(system))
    chat = [*opening, *(one for turn in turns for one in _turn_of(turn))]
    kept = {name: sample.request[name] for name in PLAIN_FIELDS if name in sample.request}
    if "max_output_tokens" in sample.request:
        kept["max_tokens"] = sample.request["max_output_tokens"]
    return CHAT, {**kept, "messages": chat}


SYSTEM_FIELDS = {
    "/v1/responses": ("instructions", "input"),
    "/v1/messages": ("system", "messages"),
}
"""Where the other routes keep their system text and their turns."""
PLAIN_FIELDS = ("model", "temperature", "top_p", "top_k", "seed", "max_tokens", "stop")


def _turn_of(turn: object) -> list[Body]:
    if not isinstance(turn, Mapping) or turn.get("type", "message") != "message":
        raise NotReplayableError("content")
    return _turn(str(turn.get("role", "user")), turn.get("content"))


def _turn(role: str, content: object) -> list[Body]:
    parts = content if isinstance(content, list) else []
    if not all(isinstance(part, Mapping) and "text" in part for part in parts):
        raise NotReplayableError("content")
    text = content if isinstance(content, str) else "".join(str(part["text"]) for part in parts)
    return [{"role": role, "content": text}] if text else []


def own_is_comparable(mode: str, request: Mapping[str, Any]) -> bool:
    """True when an instance's own log probabilities are of the model and not of its sampling."""
    if mode == "raw":
        return True
    plain = request.get("temperature", 1.0) in (0, 1)
    return plain and not any(request.get(name) for name in SHAPING_FIELDS)


SHAPING_FIELDS = (
    *("top_k", "min_p", "logit_bias", "presence_penalty", "frequency_penalty"),
    *("repetition_penalty", "bad_words", "allowed_token_ids", "response_format"),
    *("structured_outputs", "top_p"),
)
"""Of a request, what changes the figures that an engine reports as processed."""


def _plain_prompt(request: Mapping[str, Any]) -> str:
    prompt = request.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str) or not prompt:
        raise NotReplayableError("prompt")
    return prompt


def _is_text(message: object) -> bool:
    """False for a message with pictures or sound, whose tokens `/tokenize` does not tell."""
    if not isinstance(message, Mapping):
        return False
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return all(isinstance(part, Mapping) and part.get("type") == "text" for part in parts)


def score_body(model: str | None, ids: Sequence[int]) -> Body:
    """One prefill that scores given tokens."""
    named = {"model": model} if model else {}
    asked = {"prompt": list(ids), "max_tokens": 1, "temperature": 0, "prompt_logprobs": 1}
    return {**named, **asked}


def read_scores(body: Mapping[str, Any], answer_ids: Sequence[int]) -> PromptScores:
    """Read the scores of the last tokens of the prompt.

    Raises:
        ReplicaBrokenError: they are missing or no numbers.
        LookupError, TypeError, ValueError, AttributeError: the answer has another shape.
    """
    [choice] = body["choices"]
    entries = (choice.get("prompt_logprobs") or [])[-len(answer_ids) :]
    if len(entries) != len(answer_ids):
        raise ReplicaBrokenError("no prompt_logprobs in the answer")
    read = [_scored(token_id, entry) for token_id, entry in zip(answer_ids, entries, strict=True)]
    chosen, best = [one for one, _ in read], [one for _, one in read]
    return PromptScores(
        tuple(one.nats for one in chosen),
        tuple(one.nats for one in best),
        tuple(one.text for one in chosen),
        tuple(one.text for one in best),
    )


class _Scored(NamedTuple):
    nats: float
    text: str


def _scored(token_id: int, entry: Mapping[str, Any]) -> tuple[_Scored, _Scored]:
    """The given token and the likeliest one of an entry."""
    told = {
        name: _Scored(float(one["logprob"]), one.get("decoded_token") or "")
        for name, one in entry.items()
        if one["logprob"] is not None
    }
    named = told.get(str(token_id))
    if named is None or not isfinite(named.nats):
        raise ReplicaBrokenError("a log probability is no number")
    return named, max(told.values(), key=lambda one: one.nats)


def second_body(path: str, request: Mapping[str, Any], most_tokens: int) -> Body:
    """The body that asks for a second answer to the same request."""
    kept = {
        name: value
        for name, value in request.items()
        if name not in DROPPED_FIELDS and value is not None
    }
    for name in ("max_tokens", "max_completion_tokens"):
        if isinstance(kept.get(name), int):
            kept[name] = min(kept[name], most_tokens)
    if "max_completion_tokens" not in kept:
        kept.setdefault("max_tokens", most_tokens)
    logprobs: Body = {"logprobs": TOP}
    if path == CHAT:
        logprobs = {"logprobs": True, "top_logprobs": TOP}
    ids = {"return_tokens_as_token_ids": True, "return_token_ids": True}
    return {**kept, **logprobs, **ids, "stream": False}


def read_second(path: str, body: Mapping[str, Any]) -> SecondAnswer:
    """Read the first choice of a second answer.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: the answer has another shape.
    """
    choice = body["choices"][0]
    is_cut = choice.get("finish_reason") == CUT_BY_LIMIT
    if path == COMPLETIONS:
        return SecondAnswer(choice.get("text") or "", (), _completion_tokens(choice), is_cut)
    message = choice.get("message") or {}
    calls = tuple(message.get("tool_calls") or ())
    return SecondAnswer(message.get("content") or "", calls, _chat_tokens(choice), is_cut)


def _chat_tokens(choice: Mapping[str, Any]) -> tuple[Token, ...]:
    entries = (choice.get("logprobs") or {}).get("content") or ()
    pairs = [
        (entry["token"], {one["token"]: one["logprob"] for one in entry["top_logprobs"]})
        for entry in entries
    ]
    return _tokens(pairs)


def _completion_tokens(choice: Mapping[str, Any]) -> tuple[Token, ...]:
    lists = choice.get("logprobs") or {}
    tops = (one or {} for one in lists.get("top_logprobs") or ())
    return _tokens(list(zip(lists.get("tokens") or (), tops, strict=False)))


def _tokens(pairs: Sequence[tuple[str, Mapping[str, float | None]]]) -> tuple[Token, ...]:
    """Tokens by id; none at all where one is not named by its id."""
    read = [
        Token(_id(name), {_id(one): nats for one, nats in top.items() if nats is not None})
        for name, top in pairs
    ]
    return tuple(read) if all(token.token_id >= 0 for token in read) else ()


def _id(name: str) -> int:
    number = name.removeprefix(ID_PREFIX)
    return int(number) if number != name and number.isdigit() else -1
