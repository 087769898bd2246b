"""A quiet instance is looked at: its counters, and a tiny generation of our own."""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import orjson
from multidict import CIMultiDict

from gatemesh_agent.errors import InstanceFailedError, InstanceSilentError, StreamBrokenError
from gatemesh_agent.headers import passing
from gatemesh_agent.requests import Route
from gatemesh_agent.upstream import Order, Upstream
from gatemesh_agent.watchdog import Quiet, Waiting

OK = 200
CLIENT_ERRORS = range(400, 500)
LARGEST_PAGE_BYTES = 4 * 2**20
PROGRESS = re.compile(
    rb"^vllm:(?:generation_tokens|prompt_tokens|request_success)_total(?:\{[^}]*\})? ([0-9.e+]+)",
    re.M,
)
ANSWERING_S = 5.0
"""Longest wait for a page that a living server has at hand."""

Counters = float | Literal["absent", "silent", "gone"]
"""Sum of what grows with the engine's work; `absent` without such a page."""

Own = Literal["answered", "silent", "refused", "failed"]
"""What became of a generation of our own."""


@dataclass(frozen=True, slots=True)
class Stall:
    """An instance makes no progress."""

    hard: bool
    """True when a generation of our own got no token either."""
    counters: str
    own: Own


class StallCheck:
    """Finds out whether a quiet instance really makes no progress."""

    def __init__(self, upstream: Upstream, own_s: float, api_key: str | None) -> None:
        self._upstream = upstream
        self._own_s = own_s
        self._api_key = api_key

    async def look(self, quiet: Quiet, moved: Callable[[], bool]) -> Stall | None:
        """Return how it stalls; None when it does not, or when something else explains it.

        `moved` tells whether a client has got something from it meanwhile.
        """
        base_url = quiet.longest.base_url
        before = await self._counters(base_url)
        if before == "gone" or (before != "silent" and not quiet.overdue):
            return None
        if before != "silent" and await self._is_paused(base_url):
            return None
        own = await self._generate(quiet.longest)
        if own in ("answered", "failed") or moved():
            return None
        # A server that did not even tell its counters need not be asked again.
        after = before if before == "silent" else await self._counters(base_url)
        if after == "gone" or (isinstance(after, float) and after != before) or moved():
            return None
        if own == "silent":
            return Stall(hard=True, counters=named(after), own=own)
        return Stall(hard=False, counters=named(after), own=own) if after != "absent" else None

    async def _counters(self, base_url: str) -> Counters:
        try:
            async with asyncio.timeout(ANSWERING_S):
                status, page = await self._get(base_url, "/metrics")
        except TimeoutError:
            return "silent"
        if status == 0:
            return "gone"
        figures = [float(each) for each in PROGRESS.findall(page)] if status == OK else []
        return sum(figures) if figures else "absent"

    async def _is_paused(self, base_url: str) -> bool:
        """Return True for an engine that was told to wait: it is not at fault."""
        for path, name in (("/is_paused", b'"is_paused"'), ("/is_sleeping", b'"is_sleeping"')):
            try:
                async with asyncio.timeout(ANSWERING_S):
                    status, page = await self._get(base_url, path)
            except TimeoutError:
                continue
            if status == OK and name in page and b"true" in page:
                return True
        return False

    async def _generate(self, waiting: Waiting) -> Own:
        """Ask for one token, as the client that waits would."""
        begun_s = time.monotonic()
        try:
            async with asyncio.timeout(self._own_s):
                status, _ = await self._exchange(
                    waiting.base_url, tiny_order(waiting, self._api_key)
                )
        except TimeoutError:
            return "silent"
        if status in CLIENT_ERRORS:
            # Nothing was generated: the counters get as much time to move.
            await asyncio.sleep(max(0.0, begun_s + self._own_s - time.monotonic()))
            return "refused"
        return "answered" if status == OK else "failed"

    async def _get(self, base_url: str, path: str) -> tuple[int, bytes]:
        return await self._exchange(base_url, Order("GET", path, CIMultiDict()))

    async def _exchange(self, base_url: str, order: Order) -> tuple[int, bytes]:
        """Return status and body; status 0 when the connection is refused or broken."""
        try:
            async with self._upstream.ask(base_url, order) as reply:
                body, _ = await reply.whole(await reply.first(), LARGEST_PAGE_BYTES)
                return reply.status, body
        except InstanceSilentError as error:
            raise TimeoutError from error
        except (InstanceFailedError, StreamBrokenError):
            return 0, b""


def named(counters: Counters) -> str:
    """Return how the counters are told in a verdict."""
    return "unchanged" if isinstance(counters, float) else counters


def tiny_order(waiting: Waiting, api_key: str | None) -> Order:
    """Return the smallest request that makes the engine take a step."""
    body = waiting.request.asked.body or {}
    as_text = waiting.request.asked.route is Route.COMPLETIONS
    prompt = {"prompt": "1"} if as_text else {"messages": [{"role": "user", "content": "1"}]}
    asked = {"model": body.get("model"), "max_tokens": 1, "temperature": 0, **prompt}
    path = Route.COMPLETIONS if as_text else Route.CHAT
    headers = passing(waiting.request.order.headers, "X-Request-Id", "traceparent")
    headers["Content-Type"] = "application/json"
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
    return Order("POST", str(path), headers, orjson.dumps(asked))
