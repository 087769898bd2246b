"""How much of the healthy instances the shadow may use: at once, and per second."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from gatemesh_common.messages import RoutedInstance
from gatemesh_shadow.fleet import least_busy


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of the shadow's own traffic."""

    at_once: int
    at_once_per_instance: int
    per_instance_per_s: float


@dataclass(slots=True)
class Budget:
    """Hands out turns; never more at once, or sooner, than is allowed."""

    allowance: Allowance
    clock: Callable[[], float]
    busy: dict[str, int] = field(default_factory=dict)
    _last_used: dict[str, int] = field(default_factory=dict)
    _next_s: dict[str, float] = field(default_factory=dict)
    _turns: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def turn(self, instances: Sequence[RoutedInstance]) -> AsyncIterator[RoutedInstance]:
        """Wait for a turn with one of the instances; they must not be empty."""
        chosen = await self._take(instances)
        try:
            yield chosen
        finally:
            async with self._changed:
                self.busy[chosen.instance_id] -= 1
                self._changed.notify_all()

    async def _take(self, instances: Sequence[RoutedInstance]) -> RoutedInstance:
        async with self._changed:
            while True:
                now_s = self.clock()
                chosen = self._free(instances, now_s)
                if chosen is not None:
                    return self._occupy(chosen, now_s)
                await self._wait(instances, now_s)

    def _free(self, instances: Sequence[RoutedInstance], now_s: float) -> RoutedInstance | None:
        if sum(self.busy.values()) >= self.allowance.at_once:
            return None
        free = (
            one
            for one in instances
            if self.busy.get(one.instance_id, 0) < self.allowance.at_once_per_instance
            and self._next_s.get(one.instance_id, 0.0) <= now_s
        )
        return least_busy(free, self.busy, self._last_used)

    def _occupy(self, chosen: RoutedInstance, now_s: float) -> RoutedInstance:
        name = chosen.instance_id
        self._turns += 1
        self._last_used[name] = self._turns
        self.busy[name] = self.busy.get(name, 0) + 1
        self._next_s[name] = now_s + 1 / self.allowance.per_instance_per_s
        return chosen

    async def _wait(self, instances: Sequence[RoutedInstance], now_s: float) -> None:
        """Until a turn ends, or one of the instances may be asked again.

        The moment is the one at which none was free: by a later one an instance may be, and then
        nobody would wake us.
        """
        nexts_s = (self._next_s.get(one.instance_id, now_s) for one in instances)
        wait_s = min((next_s - now_s for next_s in nexts_s if next_s > now_s), default=None)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._changed.wait()
