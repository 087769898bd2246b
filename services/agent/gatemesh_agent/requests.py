"""What a client asked for, and how to ask the engine for log probabilities beside it. Pure."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from gatemesh_common.messages import Decoding

SPOILT_BY_LOGPROBS = ("logprob_token_ids", "echo", "use_beam_search")
"""Fields with which an added request for log probabilities changes more than `logprobs`."""


class Route(StrEnum):
    """The ways to ask for text that are guarded."""

    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"
    RESPONSES = "/v1/responses"
    MESSAGES = "/v1/messages"


ANY_SHAPE = "/invocations"
"""Takes a body of any other path."""
GENERATING = (
    "/v1/chat/completions/batch",
    ANY_SHAPE,
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


def route_of_body(body: Mapping[str, Any]) -> Route | None:
    """Return the route whose answers an engine gives to a body that may be of any; None: unknown.

    Source: vLLM 0.32.0, entrypoints/generate/factories.py: chat first, then completions.
    """
    if "messages" in body:
        return Route.CHAT
    return Route.COMPLETIONS if "prompt" in body else None


def in_background(route: Route, body: Mapping[str, Any]) -> bool:
    """Return True when the answer only says that the work has begun."""
    return route is Route.RESPONSES and bool(body.get("background"))


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
        may_add=not own and MAY_ADD[route](body),
        keeps_bare_events=bool(body.get("return_token_ids")),
    )


def understand_any(raw: bytes) -> Asked | None:
    """Read a request whose body says what it asks; None when that is not known."""
    body = parsed(raw)
    route = None if body is None else route_of_body(body)
    return None if route is None else understand(route, raw)


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
    if route is Route.RESPONSES:
        return INCLUDED in included(body)
    if route is Route.MESSAGES:
        return False
    wish = body.get("logprobs")
    return wish is not None if route is Route.COMPLETIONS else bool(wish)


INCLUDED = "message.output_text.logprobs"
"""How `/v1/responses` is asked for log probabilities, in `include`."""


def included(body: Mapping[str, Any]) -> list[Any]:
    """Return what else a response is to include."""
    wish = body.get("include")
    return wish if isinstance(wish, list) else []


def own_count(route: Route, body: Mapping[str, Any]) -> int:
    """Return how many log probabilities per token the client asked for; odd wishes count as 0."""
    count = body.get("logprobs" if route is Route.COMPLETIONS else "top_logprobs")
    return count if isinstance(count, int) else 0


def is_unspoilt(body: Mapping[str, Any]) -> bool:
    """Return True when no field would make an added wish change more than `logprobs`."""
    return not any(body.get(name) for name in SPOILT_BY_LOGPROBS)


def chat_may_add(body: Mapping[str, Any]) -> bool:
    """Return True when log probabilities can be added and taken out without a trace."""
    # The engine refuses `top_logprobs` without `logprobs`; the client is to see that.
    return is_unspoilt(body) and not body.get("top_logprobs")


def responses_may_add(body: Mapping[str, Any]) -> bool:
    """Return True when log probabilities can be added and taken out without a trace."""
    # What the engine would refuse is not to be overruled.
    count = body.get("top_logprobs", 0)
    listed = body.get("include") is None or isinstance(body.get("include"), list)
    return listed and type(count) is int and 0 <= count <= MOST_TOP_LOGPROBS


MOST_TOP_LOGPROBS = 20


def never(_body: Mapping[str, Any]) -> bool:
    """Return False: this route knows no log probabilities."""
    return False


MAY_ADD: Mapping[Route, Callable[[Mapping[str, Any]], bool]] = {
    Route.CHAT: chat_may_add,
    Route.COMPLETIONS: is_unspoilt,
    Route.RESPONSES: responses_may_add,
    Route.MESSAGES: never,
}


def with_logprobs(asked: Asked, count: int, *, by_id: bool = False) -> bytes:
    """Return the body that also asks for `count` log probabilities; all else is the same bytes.

    The last of two equal keys counts, so a client's own `false` is overruled where it stands. With
    `by_id` their tokens are to be told as ids.
    """
    end = asked.raw.rindex(b"}")
    comma = b"," if asked.body else b""
    wish = WISHES[asked.route](asked.body or {}, count)
    if by_id and asked.route in NAMES_IDS:
        wish += IDS_WISH
    return asked.raw[:end] + comma + wish + asked.raw[end:]


NAMES_IDS = (Route.CHAT, Route.COMPLETIONS)
IDS_WISH = b',"return_tokens_as_token_ids":true'


def response_wish(body: Mapping[str, Any], count: int) -> bytes:
    """Return what `/v1/responses` is asked in addition, with what the client wants included."""
    include = orjson.dumps([*included(body), INCLUDED])
    return b'"include":%b,"top_logprobs":%d' % (include, count)


WISHES: Mapping[Route, Callable[[Mapping[str, Any], int], bytes]] = {
    Route.CHAT: lambda _body, count: b'"logprobs":true,"top_logprobs":%d' % count,
    Route.COMPLETIONS: lambda _body, count: b'"logprobs":%d' % count,
    Route.RESPONSES: response_wish,
}


def keyed_hash(key: bytes, data: bytes) -> str:
    """Return 32 hex digits that only the holder of the key can tie to the data."""
    return hashlib.blake2b(data, key=key[:64], digest_size=16).hexdigest()


def prompt_fingerprint(body: Mapping[str, Any], key: bytes) -> str:
    """Return the keyed hash of the prompt: the same prompt has the same one, whatever else is."""
    prompt = prompt_in(body)
    try:
        written = orjson.dumps(prompt, option=orjson.OPT_SORT_KEYS)
    except (TypeError, orjson.JSONEncodeError):
        written = json.dumps(prompt, sort_keys=True).encode()
    return keyed_hash(key, written)


def prompt_in(body: Mapping[str, Any]) -> Any:
    """Return what the engine is asked, by whichever field."""
    asked = next((body[name] for name in PROMPT_FIELDS if name in body), None)
    before = [body[name] for name in SYSTEM_FIELDS if body.get(name) is not None]
    return [*before, asked] if before else asked


PROMPT_FIELDS = ("messages", "prompt", "input")
SYSTEM_FIELDS = ("system", "instructions")


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
