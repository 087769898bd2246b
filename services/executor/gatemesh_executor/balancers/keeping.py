"""Keeping one balancer to what is wished of it, however often it forgets."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gatemesh_common.errors import GatemeshError, SettingsError
from gatemesh_executor.balancers.base import (
    Balancer,
    BalancerRefusedError,
    BalancerUnavailableError,
    Server,
)
from gatemesh_executor.metrics import BALANCER_ASSERTED, BALANCER_FAULTS

log = logging.getLogger(__name__)

SharesNow = Callable[[], Mapping[Server, float]]


@dataclass
class Keeper:
    """One balancer, with one change under way at a time."""

    name: str
    balancer: Balancer
    servers: frozenset[Server]
    shares_now: SharesNow
    """Returns what is wished of the servers that anybody has said something of."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _fault: str = ""

    async def verify(self) -> bool:
        """Return True once the balancer has said that it knows every server.

        Raises:
            SettingsError: it does not know one; names the way out.
        """
        try:
            async with self._lock:
                for server in sorted(self.servers):
                    await self.balancer.look(server)
        except BalancerRefusedError as error:
            raise SettingsError(str(error)) from error
        except BalancerUnavailableError as error:
            self._note(error)
            return False
        return True

    async def assert_again(self) -> None:
        """Have the wishes hold; a fault is told once and tried again at the next call."""
        try:
            # The wishes are read within: a drain that waits for the lock must not be undone.
            async with self._lock:
                changed = await self.balancer.assert_again(self.shares_now())
        except (BalancerUnavailableError, BalancerRefusedError) as error:
            self._note(error)
            return
        self._note(None)
        for server in changed:
            BALANCER_ASSERTED.labels(balancer=self.name).inc()
            log.info("balancer_asserted", extra={"balancer": self.name, "server": str(server)})

    async def take_out(self, server: Server) -> None:
        """Take a server out; the wish must say so already. Raises what a balancer raises."""
        async with self._lock:
            await self.balancer.take_out(server)

    async def put_back(self, server: Server, share: float) -> str | None:
        """Put a server back; returns what the report should say if a person keeps it out."""
        async with self._lock:
            await self.balancer.put_back(server, share)
            standing = await self.balancer.look(server)
        return f"{self.name}: {server} stays in maintenance" if standing.by_hand else None

    async def sessions(self, server: Server) -> int | None:
        """Return what runs there, and take the server out again if the balancer forgot it."""
        async with self._lock:
            if not (await self.balancer.look(server)).out:
                await self.balancer.take_out(server)
            # Counted only now: something may have slipped in before.
            return (await self.balancer.look(server)).sessions

    async def confirm_out(self, server: Server) -> None:
        """Return when the balancer says by itself that the server is out.

        Raises:
            BalancerUnavailableError: it says otherwise; the server has been taken out again.
        """
        async with self._lock:
            if not (await self.balancer.look(server)).out:
                await self.balancer.take_out(server)
                raise BalancerUnavailableError(f"{self.name}: {server} had come back")

    def _note(self, error: GatemeshError | None) -> None:
        if error is not None:
            BALANCER_FAULTS.labels(balancer=self.name).inc()
        text = "" if error is None else str(error)
        if text != self._fault:
            event = "balancer_at_fault" if text else "balancer_answers"
            log.warning(event, extra={"balancer": self.name, "why": text})
        self._fault = text
