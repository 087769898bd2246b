"""Answers that many pages ask for: made once, kept for a few seconds."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gatemesh_console.paging import Row


@dataclass
class Fresh:
    """Rows of one query; however many ask at once, it runs once."""

    ask: Callable[[], Awaitable[list[Row]]]
    kept_s: float
    clock: Callable[[], float] = time.monotonic
    _rows: list[Row] = field(default_factory=list)
    _until_s: float = field(default=float("-inf"))
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def rows(self) -> list[Row]:
        """Return the rows, not older than allowed; raises what the query raises."""
        async with self._asking:
            if self.clock() >= self._until_s:
                self._rows = await self.ask()
                self._until_s = self.clock() + self.kept_s
            return self._rows
