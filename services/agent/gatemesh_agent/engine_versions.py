"""Asks engines which version they are: once in a life, and only when something is wrong there."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from multidict import CIMultiDict

from gatemesh_agent.errors import InstanceFailedError, InstanceSilentError, StreamBrokenError
from gatemesh_agent.reporting import Life
from gatemesh_agent.stripping import as_object, loads
from gatemesh_agent.upstream import Order, Upstream

PATH = "/version"
ANSWER_S = 2.0
AGAIN_S = 60.0
"""Time after which an engine that said nothing is asked again."""
MOST_LIVES = 1000
LONGEST_ANSWER_BYTES = 4096
LONGEST_VERSION = 200


Ask = Callable[[str], Awaitable[str | None]]
"""Asks the engine at an address for its version."""


class EngineVersions:
    """Knows the version of each life that was asked for."""

    def __init__(
        self,
        ask: Ask,
        address_of: Callable[[str], str | None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._address_of = address_of
        self._monotonic = monotonic
        self._known: OrderedDict[Life, tuple[str | None, float]] = OrderedDict()

    async def version(self, life: Life) -> str | None:
        """Return the version of a life; None where the engine does not tell in time."""
        known, asked_s = self._known.get(life, (None, -AGAIN_S))
        base_url = self._address_of(life.instance_id)
        if known is None and base_url is not None and self._monotonic() - asked_s >= AGAIN_S:
            known = await self._ask(base_url)
            self._known[life] = (known, self._monotonic())
            if len(self._known) > MOST_LIVES:
                self._known.popitem(last=False)
        return known


def version_in(body: bytes) -> str | None:
    """Return the version that an engine's answer names."""
    try:
        found = as_object(loads(body)).get("version")
    except (ValueError, RecursionError):
        return None
    return found[:LONGEST_VERSION] if isinstance(found, str) else None


def version_asker(upstream: Upstream, api_key: str | None) -> Ask:
    """Return what asks engines; one that hangs is not waited for."""
    headers = CIMultiDict({"Authorization": f"Bearer {api_key}"} if api_key else {})
    order = Order("GET", PATH, headers, None)

    async def ask(base_url: str) -> str | None:
        try:
            async with asyncio.timeout(ANSWER_S), upstream.ask(base_url, order) as reply:
                body, _ = await reply.whole(await reply.first(), LONGEST_ANSWER_BYTES)
        except (InstanceFailedError, InstanceSilentError, StreamBrokenError, TimeoutError):
            return None
        return version_in(body)

    return ask
