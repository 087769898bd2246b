"""What a client asked for, and how to ask the engine for log probabilities beside it. Pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from gatemesh_common.messages import Decoding

SPOILT_BY_LOGPROBS = ("logprob_token_ids", "echo", "use_beam_search")
"""Fields with which an added request for log probabilities changes more than `logprobs`."""


class Route(StrEnum):
    """The two ways to ask for text that are guarded."""

    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"


GENERATING = (
    "/v1/responses",
    "/v1/messages",
    "/v1/chat/completions/batch",
    "/invocations",
    "/inference/v1/generate",
    "/generative_scoring",
)
"""Other ways to make the engine write text; they pass unguarded and are counted."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for text as the client sent it, and what is understood of it."""

    route: Route
    raw: bytes
    body: Mapping[str, Any] | None = None
    """None when it is not a JSON object in UTF-8: it is passed on and not judged."""
    own_logprobs: bool = False
    """True when the client asked for log probabilities; they are its own then."""
    own_count: int = 0
    """How many per token the client asked for."""
    may_add: bool = False
    """True when asking for log probabilities changes nothing that cannot be taken out again."""
    keeps_bare_events: bool = False
    """True when the client sees events without text anyway."""


def route_of(method: str, path: str) -> Route | None:
    """Return the guarded route of a request; None when it passes unguarded."""
    return ROUTES.get(path) if method == "POST" else None


ROUTES = {str(route): route for route in Route}


def generates(method: str, path: str) -> bool:
    """Return True for a request that makes the engine write text past the gates."""
    return method == "POST" and path in GENERATING


def understand(route: Route, raw: bytes) -> Asked:
    """Read a request; never raises, the engine is the one to refuse."""
    body = parsed(raw)
    if body is None:
        return Asked(route, raw)
    own = asks_logprobs(route, body)
    return Asked(
        route=route,
        raw=raw,
        body=body,
        own_logprobs=own,
        own_count=own_count(route, body) if own else 0,
        may_add=not own and may_add(route, body),
        keeps_bare_events=bool(body.get("return_token_ids")),
    )


def parsed(raw: bytes) -> Mapping[str, Any] | None:
    """Return the JSON object of a body, None when it is none."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        try:
            # Lone surrogates: the engine's own parser takes them.
            body = json.loads(raw.decode())
        except (ValueError, RecursionError):
            return None
    return body if isinstance(body, dict) else None


def asks_logprobs(route: Route, body: Mapping[str, Any]) -> bool:
    """Return True when the answer carries log probabilities by the client's own wish."""
    wish = body.get("logprobs")
    return wish is not None if route is Route.COMPLETIONS else bool(wish)


def own_count(route: Route, body: Mapping[str, Any]) -> int:
    """Return how many log probabilities per token the client asked for; odd wishes count as 0."""
    count = body.get("top_logprobs" if route is Route.CHAT else "logprobs")
    return count if isinstance(count, int) else 0


def may_add(route: Route, body: Mapping[str, Any]) -> bool:
    """Return True when log probabilities can be added and taken out without a trace."""
    if any(body.get(name) for name in SPOILT_BY_LOGPROBS):
        return False
    # The engine refuses `top_logprobs` without `logprobs`; the client is to see that.
    return route is not Route.CHAT or not body.get("top_logprobs")


def with_logprobs(asked: Asked, count: int) -> bytes:
    """Return the body that also asks for `count` log probabilities; all else is the same bytes.

    The last of two equal keys counts, so a client's own `false` is overruled where it stands.
    """
    end = asked.raw.rindex(b"}")
    comma = b"," if asked.body else b""
    wish = WISHES[asked.route] % count
    return asked.raw[:end] + comma + wish + asked.raw[end:]


WISHES = {
    Route.CHAT: b'"logprobs":true,"top_logprobs":%d',
    Route.COMPLETIONS: b'"logprobs":%d',
}


def keyed_hash(key: bytes, data: bytes) -> str:
    """Return 32 hex digits that only the holder of the key can tie to the data."""
    return hashlib.blake2b(data, key=key[:64], digest_size=16).hexdigest()


def prompt_fingerprint(body: Mapping[str, Any], key: bytes) -> str:
    """Return the keyed hash of the prompt: the same prompt has the same one, whatever else is."""
    prompt = body.get("messages", body.get("prompt"))
    try:
        written = orjson.dumps(prompt, option=orjson.OPT_SORT_KEYS)
    except (TypeError, orjson.JSONEncodeError):
        written = json.dumps(prompt, sort_keys=True).encode()
    return keyed_hash(key, written)


def tenant_of(authorization: str | None, body: Mapping[str, Any], key: bytes) -> str | None:
    """Return the keyed hash of who asks: the API key, else the `user` field."""
    who = authorization or body.get("user")
    if not isinstance(who, str) or not who:
        return None
    return keyed_hash(key, who.encode("utf-8", "surrogateescape" if authorization else "replace"))


def decoding_of(body: Mapping[str, Any]) -> Decoding:
    """Return how the engine picks tokens for this request."""
    temperature = body.get("temperature")
    if temperature is None:
        return Decoding.UNKNOWN
    if isinstance(temperature, int | float):
        return Decoding.GREEDY if temperature == 0 else Decoding.SAMPLED
    return Decoding.UNKNOWN
