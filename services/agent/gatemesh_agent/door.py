"""Who is let in at the public port: by path, by key, and by what the key has used. Pure."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from gatemesh_agent.answers import door_body
from gatemesh_agent.keys import ApiKey, Limits, digest_of
from gatemesh_common.rates import Bucket

PLAIN_PATH = re.compile(r"(/[\w:~@+-][\w.:~@+-]*)+", re.ASCII)
"""No dots that climb, no escapes and no empty steps: what is compared is what the engine sees."""
CLOSED = re.compile(r"/v1/(un)?load_lora_adapter")
OPEN = re.compile(
    r"/v1/.+|/(v2/)?(health|ping|version|rerank|tokenize|detokenize|score|pooling|classify"
    r"|invocations|embeddings)"
)
"""Paths of vLLM 0.32 that are made for clients; not metrics, sleep, caches, profiles, adapters."""
BEARER = "bearer "
FEWEST_S = 1


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is turned away, and what its client is told."""

    status: int
    why: str
    body: bytes
    retry_after_s: int | None = None


class Holder:
    """One key and what it has used."""

    __slots__ = ("key", "requests", "tokens")

    def __init__(self, key: ApiKey) -> None:
        self.key = key
        limits = key.limits
        self.requests = Bucket.per_min(limits.requests_per_min) if limits.requests_per_min else None
        self.tokens = Bucket.per_min(limits.tokens_per_min) if limits.tokens_per_min else None


class Door:
    """Knows the keys; without any given, lets nobody in."""

    def __init__(self) -> None:
        self._holders: dict[bytes, Holder] = {}

    def replace(self, keys: Mapping[bytes, ApiKey]) -> None:
        """Go by other keys from now on; what a key has used counts on while its limits stay."""
        known = self._holders
        self._holders = {
            digest: known[digest] if digest in known and known[digest].key == key else Holder(key)
            for digest, key in keys.items()
        }

    def enter(self, secret: str | None, now_s: float) -> Holder | Refusal:
        """Let a request in, and count it; or say why not."""
        if secret is None:
            return NO_KEY
        holder = self._holders.get(digest_of(secret))
        if holder is None:
            return UNKNOWN_KEY
        requests, tokens = holder.requests, holder.tokens
        if requests is not None and (wait_s := requests.wait_s(now_s)):
            return exhausted("requests", holder.key.limits, wait_s)
        if tokens is not None and (wait_s := tokens.wait_s(now_s)):
            return exhausted("tokens", holder.key.limits, wait_s)
        if requests is not None:
            requests.use()
        return holder


def is_open(path: str) -> bool:
    """Tell whether a path is one that is made for clients."""
    plain = PLAIN_PATH.fullmatch(path) and OPEN.fullmatch(path)
    return bool(plain) and not CLOSED.match(path)


def secret_in(authorization: str | None, api_key: str | None) -> str | None:
    """Return the key that a client shows, by either header; None without one."""
    if authorization and authorization[: len(BEARER)].lower() == BEARER:
        return authorization[len(BEARER) :].strip() or None
    return api_key or None


def exhausted(what: str, limits: Limits, wait_s: float) -> Refusal:
    """Say that a minute's worth is used up, and when to come again."""
    per_min = limits.requests_per_min if what == "requests" else limits.tokens_per_min
    after_s = max(FEWEST_S, math.ceil(wait_s))
    message = f"this key may use {per_min} {what} a minute; try again in {after_s} s"
    body = door_body(what, "rate_limit_exceeded", message)
    return Refusal(429, what, body, after_s)


NO_KEY = Refusal(
    401,
    "no_key",
    door_body(
        "invalid_request_error",
        "invalid_api_key",
        "no API key was sent; send one as `Authorization: Bearer KEY`",
    ),
)
UNKNOWN_KEY = Refusal(
    401,
    "unknown_key",
    door_body(
        "invalid_request_error",
        "invalid_api_key",
        "this API key is not known here; ask whoever runs the service for another",
    ),
)
CLOSED_PATH = Refusal(
    404,
    "path",
    door_body("NotFoundError", "not_found", "this path is not served here"),
)
