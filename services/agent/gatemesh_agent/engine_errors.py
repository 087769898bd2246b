"""Errors of the engine that mean something else than they say. Pure.

Source: vLLM 0.32.0, seen with a real engine: refused in a drain, died, capped log probabilities.
"""

import re
from collections.abc import Mapping
from json import JSONDecoder
from typing import Any

DRAIN_REFUSED = b"cannot schedule new futures after shutdown"
ENGINE_DIED = b"EngineCore encountered an issue"
HIGHEST_ALLOWED = re.compile(rb"greater than max allowed: (\d{1,6})")

BAD_REQUEST = 400
INTERNAL_ERROR = 500
LONGEST_CODE = 9
CLIENTS_FAULT = re.compile(
    r"invalid|bad_?request|not_?found|context_length|unprocessable|permission|authentication", re.I
)
"""In the words of an error that is the request's own."""
NO_ROOM = (429, 503)
"""An engine, or what stands before it, has too much to do."""
PASSING = frozenset({429, 500, 502, 503, 504})
"""Statuses under which another engine may answer the same request."""


def drain_refused(status: int, body: bytes) -> bool:
    """Return True when the engine has been told to stop and takes no new request."""
    return status == INTERNAL_ERROR and DRAIN_REFUSED in body


def engine_died(status: int, body: bytes) -> bool:
    """Return True when the engine died or was stopped under the request."""
    return status == INTERNAL_ERROR and ENGINE_DIED in body


def may_pass(status: int) -> bool:
    """Return True for an error of the engine's own, after which another may answer."""
    return status in PASSING


def told_status(data: bytes) -> int:
    """Return the status that the error tells with which a stream opens; 500 where it tells none."""
    try:
        event, _ = JSONDecoder().raw_decode(data.removeprefix(b"data: ").decode())
        error = event["error"]
    except (ValueError, KeyError, TypeError):
        return INTERNAL_ERROR
    return status_of(error) if isinstance(error, dict) else INTERNAL_ERROR


def status_of(error: Mapping[str, Any]) -> int:
    """Return the status that an error event tells, as a number or, as proxies do, in words."""
    code = error.get("code")
    if type(code) is int:
        return code
    if isinstance(code, str) and code.isascii() and code.isdigit():
        return int(code[:LONGEST_CODE])
    words = f"{code} {error.get('type')}"
    return BAD_REQUEST if CLIENTS_FAULT.search(words) else INTERNAL_ERROR


def opens_with_error(data: bytes) -> bool:
    """Return True for a stream whose first event is an error: nothing was generated."""
    return data.startswith(b'data: {"error"')


def names_logprobs(body: bytes) -> bool:
    """Return True for an error that may owe itself to log probabilities the client never asked."""
    return b"logprobs" in body


def names_token_ids(body: bytes) -> bool:
    """Return True for an error about the wish to have tokens told as ids."""
    return b"return_tokens_as_token_ids" in body


def highest_allowed(body: bytes, below: int) -> int | None:
    """Return how many log probabilities the engine allows, where its error says so.

    Always less than were asked, so that asking again comes to an end.
    """
    found = HIGHEST_ALLOWED.search(body)
    return min(int(found[1]), below - 1) if found else None
