"""Learns how many tokens each model knows: by the engine's own word, its figures, or a setting."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable

import orjson
from multidict import CIMultiDict

from gatemesh_agent.errors import InstanceFailedError, InstanceSilentError, StreamBrokenError
from gatemesh_agent.reporting import Life
from gatemesh_agent.upstream import Order, Upstream

log = logging.getLogger(__name__)

PATH = "/v1/completions"
NO_TOKEN = 2**31 - 2
"""Beyond every vocabulary, and within what engines read as a token id."""
SIZE = re.compile(rb"[Vv]ocabulary size:? (?:is )?(\d{1,8})\b")
LONGEST_ERROR_BYTES = 65_536
MOST_ASKED = 1000

Ask = Callable[[str, str], Awaitable[int | None]]
"""Asks the engine at an address for the vocabulary size of a model."""


class Vocabulary:
    """Knows vocabulary sizes; asks each life of an engine once for each model, off every path."""

    def __init__(
        self,
        ask: Ask,
        address_of: Callable[[str], str | None],
        setting: Callable[[str], int | None],
    ) -> None:
        self._ask = ask
        self._address_of = address_of
        self._setting = setting
        self._told: dict[str, int] = {}
        self._heard: dict[str, int] = {}
        self._asked: set[tuple[Life, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def size(self, model: str) -> int | None:
        """Return the best that is known of a model."""
        return self._told.get(model) or self._heard.get(model) or self._setting(model)

    def hear(self, model: str, size: int) -> None:
        """Take in the width of the logits that a plugin measured."""
        if len(self._heard) < MOST_ASKED or model in self._heard:
            self._heard[model] = size

    def learn(self, life: Life, model: str) -> None:
        """Have a life of an engine asked, once; returns at once."""
        base_url = self._address_of(life.instance_id)
        if (life, model) in self._asked or not model or base_url is None:
            return
        if len(self._asked) >= MOST_ASKED:
            self._asked.clear()
        self._asked.add((life, model))
        task = asyncio.get_running_loop().create_task(self._learn(base_url, model))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Wait for what is being asked."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def stop(self) -> None:
        """Ask no more."""
        for task in self._tasks:
            task.cancel()
        await self.settle()

    async def _learn(self, base_url: str, model: str) -> None:
        size = await self._ask(base_url, model)
        if size is not None and size > 1:
            self._told[model] = size
            log.info("vocabulary_learnt", extra={"model": model, "vocab_size": size})


def size_in(error: bytes) -> int | None:
    """Return the vocabulary size that an engine's refusal names."""
    found = SIZE.search(error)
    return int(found[1]) if found else None


def asker(upstream: Upstream, api_key: str | None) -> Ask:
    """Return what asks engines: a token that cannot be is refused, and the refusal says why."""
    headers = CIMultiDict({"Content-Type": "application/json"})
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"

    async def ask(base_url: str, model: str) -> int | None:
        wrong = {"model": model, "prompt": "a", "max_tokens": 1, "logit_bias": {str(NO_TOKEN): 1}}
        order = Order("POST", PATH, headers, orjson.dumps(wrong))
        try:
            async with upstream.ask(base_url, order) as reply:
                body, _ = await reply.whole(await reply.first(), LONGEST_ERROR_BYTES)
        except (InstanceFailedError, InstanceSilentError, StreamBrokenError):
            return None
        return size_in(body)

    return ask
