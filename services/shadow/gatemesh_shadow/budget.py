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
                chosen = self._free(instances)
                if chosen is not None:
                    return self._occupy(chosen)
                await self._wait(instances)

    def _free(self, instances: Sequence[RoutedInstance]) -> RoutedInstance | None:
        now = self.clock()
        if sum(self.busy.values()) >= self.allowance.at_once:
            return None
        free = (
            one
            for one in instances
            if self.busy.get(one.instance_id, 0) < self.allowance.at_once_per_instance
            and self._next_s.get(one.instance_id, 0.0) <= now
        )
        return least_busy(free, self.busy, self._last_used)

    def _occupy(self, chosen: RoutedInstance) -> RoutedInstance:
        name, now = chosen.instance_id, self.clock()
        self._turns += 1
        self._last_used[name] = self._turns
        self.busy[name] = self.busy.get(name, 0) + 1
        self._next_s[name] = now + 1 / self.allowance.per_instance_per_s
        return chosen

    async def _wait(self, instances: Sequence[RoutedInstance]) -> None:
        """Until a turn ends, or one of the instances may be asked again."""
        now = self.clock()
        soonest = min(self._next_s.get(one.instance_id, now) for one in instances)
        wait_s = max(soonest - now, 0.0) if soonest > now else None
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._changed.wait()
