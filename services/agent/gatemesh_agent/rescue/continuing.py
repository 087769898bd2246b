"""How another engine is asked to go on where one was cut, with nothing added. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from gatemesh_agent.requests import Asked, Route, understand
from gatemesh_agent.rescue.kept import Kept
from gatemesh_agent.sampling import has_other_media

Body = dict[str, Any]

LENGTHS = ("max_completion_tokens", "max_tokens")
USUAL_COMPLETION_TOKENS = 16
"""What an engine takes for a completion that names no limit. Source: vLLM 0.32.0."""

SHARED = frozenset(
    {
        *("model", "temperature", "top_p", "top_k", "min_p", "seed", "repetition_penalty", "stop"),
        *("stop_token_ids", "include_stop_str_in_output", "ignore_eos", "logit_bias", "user"),
        *("skip_special_tokens", "spaces_between_special_tokens", "bad_words", "priority"),
        *("allowed_token_ids", "vllm_xargs", "cache_salt", "stream", "stream_options"),
        *("stream_interval", "return_token_ids", "return_tokens_as_token_ids", "min_tokens"),
        *("presence_penalty", "frequency_penalty", "length_penalty", "request_id"),
    }
)
"""Fields that mean the same on both routes."""
TEMPLATED = frozenset(
    {
        *("messages", "add_generation_prompt", "continue_final_message", "add_special_tokens"),
        *("chat_template", "chat_template_kwargs", "mm_processor_kwargs"),
    }
)
"""Fields that `/tokenize` takes for the same prompt."""
MEANINGLESS = frozenset(
    {
        *("n", "best_of", "logprobs", "top_logprobs", "response_format", "tool_choice", *LENGTHS),
        *("metadata", "store", "parallel_tool_calls", "service_tier", "include_reasoning"),
    }
)
"""Fields that say nothing here, since what they could ask for is refused or not there."""


@dataclass(frozen=True, slots=True)
class Tokenized:
    """A prompt as an engine reads it."""

    ids: tuple[int, ...]
    room: int
    """Tokens that the engine's context holds."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """A request for the rest of an answer."""

    asked: Asked
    tokens: int = 0
    """Of the answer so far."""
    swallows: str = ""
    """Blank text at the kept end that the engine is not told of, and says again."""
    prompt_tokens: int | None = None
    """Tokens of the client's own prompt, where they are known."""

    @property
    def path(self) -> str:
        """Where it is sent."""
        return str(self.asked.route)


def goes_by_ids(asked: Asked, kept: Kept) -> bool:
    """Return True where the answer can go on by token ids and mean the same."""
    body = asked.body or {}
    if kept.ids is None or body.get("stop"):
        # While a stop string may be under way the engine says less than it has written.
        return False
    if asked.route is Route.COMPLETIONS:
        return True
    if has_other_media(body):
        # No ids stand for a picture.
        return False
    usual = SHARED | TEMPLATED | MEANINGLESS
    own = asked.own_logprobs or bool(body.get("tools"))
    return not own and all(name in usual or value is None for name, value in body.items())


def tokenize_body(asked: Asked) -> bytes:
    """Return what `/tokenize` is asked for the ids of a client's prompt."""
    body = asked.body or {}
    if asked.route is Route.COMPLETIONS:
        names = {"model", "prompt", "add_special_tokens"}
    else:
        names = {"model", *TEMPLATED}
    return written({name: value for name, value in body.items() if name in names})


def count_body(asked: Asked, text: str) -> bytes:
    """Return what `/tokenize` is asked for the length of a text within an answer."""
    return written({**named_model(asked), "prompt": text, "add_special_tokens": False})


def named_model(asked: Asked) -> Body:
    """Return the field that names the model, where the client did."""
    body = asked.body or {}
    return {"model": body["model"]} if "model" in body else {}


def by_ids(asked: Asked, kept: Kept, prompt: Tokenized) -> Continuation:
    """Return a completion of the prompt's and the answer's own tokens."""
    body = limited(asked, kept)
    if asked.route is Route.CHAT:
        body = {name: value for name, value in body.items() if name in SHARED} | lengths_of(body)
    copy = shortened(body, kept.tokens)
    chats = asked.route is Route.CHAT and not any(copy.get(name) for name in LENGTHS)
    if chats and (room := room_left(kept, prompt)):
        copy["max_tokens"] = room
    copy["prompt"] = [*prompt.ids, *(kept.ids or ())]
    copy.pop("add_special_tokens", None)
    asked = understand(Route.COMPLETIONS, written(copy))
    return Continuation(asked, kept.tokens, prompt_tokens=len(prompt.ids))


def limited(asked: Asked, kept: Kept) -> Body:
    """Return a request with its limit; who wrote more than is usual has another one of its own."""
    body = dict(asked.body or {})
    usual = asked.route is Route.COMPLETIONS and kept.tokens < USUAL_COMPLETION_TOKENS
    if usual and body.get("max_tokens") is None:
        body["max_tokens"] = USUAL_COMPLETION_TOKENS
    return body


def lengths_of(body: Mapping[str, Any]) -> Body:
    """Return the limit of a chat's answer, as a completion has it."""
    limit = next((body[name] for name in LENGTHS if body.get(name) is not None), None)
    return {} if limit is None else {"max_tokens": limit}


def room_left(kept: Kept, prompt: Tokenized) -> int:
    """Return how many tokens an answer without a limit may still have; 0: the engine knows."""
    return max(0, prompt.room - len(prompt.ids) - kept.tokens)


def by_text(asked: Asked, kept: Kept) -> Continuation:
    """Return the request with what was said as the beginning of its answer."""
    said = kept.text.rstrip()
    if not said:
        # A turn that has not begun is asked for as it was.
        return Continuation(asked, swallows=kept.text)
    copy = shortened(limited(asked, kept), kept.tokens)
    if asked.route is Route.CHAT:
        copy |= begun_turn(copy, said)
    else:
        copy["prompt"] = f"{the_prompt(copy)}{said}"
    return Continuation(
        understand(asked.route, written(copy)), kept.tokens, swallows=kept.text[len(said) :]
    )


def begun_turn(body: Body, said: str) -> Body:
    """Return the fields of a chat that have an engine go on with a turn of its own."""
    messages = list(body["messages"])
    last = messages[-1]
    if body.get("continue_final_message") and isinstance(last.get("content"), str):
        messages[-1] = {**last, "content": last["content"] + said}
    else:
        messages.append({"role": "assistant", "content": said})
    return {
        "messages": messages,
        "add_generation_prompt": False,
        "continue_final_message": True,
    }


def the_prompt(body: Body) -> str:
    """Return the one prompt of a completion that goes on by text.

    Raises:
        ValueError: it is none.
    """
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise ValueError("not a prompt of text")  # noqa: TRY004
    return prompt


def shortened(body: Mapping[str, Any], tokens: int) -> Body:
    """Return a request for so many tokens less."""
    copy = dict(body)
    for name in LENGTHS:
        if type(copy.get(name)) is int:
            copy[name] = max(1, copy[name] - tokens)
    if type(copy.get("min_tokens")) is int:
        copy["min_tokens"] = max(0, copy["min_tokens"] - tokens)
    return copy


def written(body: Mapping[str, Any]) -> bytes:
    """Return a body as JSON, lone surrogates too."""
    try:
        return orjson.dumps(body)
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(body).encode()
