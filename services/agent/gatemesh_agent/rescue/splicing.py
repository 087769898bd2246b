"""Makes the events of a second engine those of the client's one stream. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from gatemesh_agent.requests import Route
from gatemesh_agent.sse import json_start
from gatemesh_agent.stripping import as_object, choices_of, loads

Fields = dict[str, Any]

OF_THE_FIRST = ("id", "created", "model", "object")
FIRST_EVENTS = 3
PROMPTS = ("prompt_token_ids", "prompt_text", "prompt_logprobs")


@dataclass(slots=True)
class Head:
    """What every event of the client's stream has in common, taken from its first one."""

    fields: Fields = field(default_factory=dict)
    has_role: bool = False
    """True once a chat has told whose turn it is."""
    seen: int = 0

    def see(self, event: bytes) -> None:
        """Take in an event that goes to the client; only the first few tell anything new."""
        if self.seen >= FIRST_EVENTS:
            return
        self.seen += 1
        fields = fields_of(event)
        if fields is None or "id" not in fields:
            return
        if not self.fields:
            self.fields = {name: fields[name] for name in OF_THE_FIRST if name in fields}
        self.has_role |= any("role" in (each.get("delta") or {}) for each in choices_of(fields))


def fields_of(event: bytes) -> Fields | None:
    """Return the JSON of an event; None where it carries none."""
    start = json_start(event)
    if start < 0:
        return None
    try:
        return as_object(loads(event[start:]))
    except (ValueError, RecursionError):
        return None


@dataclass(slots=True)
class Swallow:
    """Leaves out what an engine says again of the blank end of the kept text."""

    left: str = ""
    taken: int = 0
    """Characters left out so far: the first ones that the engine said."""

    def text(self, said: str) -> str:
        """Return what of a text is new."""
        if not self.left or not said:
            return said
        same = 0
        for mine, theirs in zip(self.left, said, strict=False):
            if mine != theirs:
                break
            same += 1
        rest = said[same:]
        self.taken += same
        self.left = "" if rest else self.left[same:]
        return rest


@dataclass(slots=True)
class Splice:
    """Turns events of one engine into those of a stream that another one began."""

    head: Head
    route: Route
    """Of the client."""
    tokens: int = 0
    """Kept of before."""
    chars: int = 0
    prompt_tokens: int | None = None
    """Of the client's prompt; None: those that the engine counts, without the kept ones."""
    swallow: Swallow = field(default_factory=Swallow)
    ended: bool = False
    """True once an event told how the answer ended."""

    def event(self, event: bytes) -> bytes:
        """Return the client's event; empty where there is nothing for it in this one."""
        fields = fields_of(event)
        if fields is None or "error" in fields:
            return event
        choices = choices_of(fields)
        if not choices and not fields.get("usage"):
            return b""
        shaped = [self._choice(choice) for choice in choices]
        if choices and not any(shaped):
            return b""
        mended = {**fields, **self.head.fields, "choices": [one for one in shaped if one]}
        for name in PROMPTS:
            if name in mended:
                mended[name] = None
        if isinstance(usage := fields.get("usage"), Mapping):
            mended["usage"] = self.usage(usage)
        return b"data: " + orjson.dumps(mended) + b"\n\n"

    def usage(self, told: Mapping[str, Any]) -> Fields:
        """Return the usage of the whole answer, in which the prompt counts once."""
        said = count_in(told, "completion_tokens") + self.tokens
        prompt = self.prompt_tokens
        if prompt is None:
            prompt = max(0, count_in(told, "prompt_tokens") - self.tokens)
        counts: Fields = {
            "prompt_tokens": prompt,
            "total_tokens": prompt + said,
            "completion_tokens": said,
        }
        details = told.get("prompt_tokens_details")
        if isinstance(details, Mapping) and isinstance(details.get("cached_tokens"), int):
            cached = min(details["cached_tokens"], prompt)
            counts |= {"prompt_tokens_details": {**details, "cached_tokens": cached}}
        return {**told, **counts}

    def _choice(self, choice: Fields) -> Fields | None:
        """Return a choice as the client knows it; None for the mere beginning of a turn."""
        self.ended |= choice.get("finish_reason") is not None
        if self.route is Route.CHAT:
            return self._turn(choice)
        text = str(choice.get("text") or "")
        mended = {**choice, "text": self.swallow.text(text)}
        if is_told(choice, text, mended["text"]):
            return None
        if "prompt_token_ids" in mended:
            mended["prompt_token_ids"] = None
        if isinstance(figures := choice.get("logprobs"), Mapping):
            mended["logprobs"] = {**figures, **self._moved(figures)}
        return mended

    def _turn(self, choice: Fields) -> Fields | None:
        text = choice.get("text")
        if isinstance(text, str):
            return self._spoken(choice, text)
        delta = choice.get("delta")
        delta = dict(delta) if isinstance(delta, Mapping) else {}
        if isinstance(content := delta.get("content"), str):
            delta["content"] = self.swallow.text(content)
            if is_told(choice, content, delta["content"]):
                return None
        is_opening = "role" in delta and choice.get("finish_reason") is None
        if is_opening and self.head.has_role and not delta.get("content"):
            return None
        if self.head.has_role:
            delta.pop("role", None)
        return {**choice, "delta": delta}

    def _spoken(self, choice: Fields, text: str) -> Fields | None:
        """Return a choice of a completion as one of a chat."""
        said = self.swallow.text(text)
        if is_told(choice, text, said):
            return None
        delta: Fields = {"content": said} if self.head.has_role else ROLE | {"content": said}
        spoken: Fields = {"index": choice.get("index", 0), "delta": delta, "logprobs": None}
        reason = choice.get("finish_reason")
        spoken["finish_reason"] = reason
        if reason is not None:
            spoken["stop_reason"] = choice.get("stop_reason")
        if "token_ids" in choice:
            spoken["token_ids"] = choice["token_ids"]
        return spoken

    def _moved(self, figures: Mapping[str, Any]) -> Fields:
        offsets = figures.get("text_offset")
        if not isinstance(offsets, list):
            return {}
        return {"text_offset": [self.chars + each for each in offsets if isinstance(each, int)]}


def is_told(choice: Fields, text: str, rest: str) -> bool:
    """Return True for a token of which the client has got all before."""
    return bool(text) and not rest and choice.get("finish_reason") is None


ROLE: Fields = {"role": "assistant"}


def count_in(fields: Mapping[str, Any], name: str) -> int:
    """Return a count of the engine; an odd one counts as 0."""
    value = fields.get(name)
    return value if isinstance(value, int) else 0
