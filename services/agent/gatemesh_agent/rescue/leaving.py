"""Leaves an instance that has not begun to answer: one that is taken out, or stands still."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from gatemesh_agent.errors import InstanceFailedError
from gatemesh_agent.reporting import Life
from gatemesh_agent.routing import Router
from gatemesh_agent.watchdog import Watch
from gatemesh_common.messages import InstanceState

LOOK_EVERY_S = 0.5
PROOF_S = 90.0
"""Time for which it holds that an instance made no progress; one that still makes none is looked at
again in less."""
STANDS_STILL = "stands still"


class Leaving:
    """Watches those who wait for a first byte."""

    def __init__(self, router: Router, watch: Watch, *, first_s: float, stall_s: float) -> None:
        self._router = router
        self._watch = watch
        self._first_s = first_s
        self._stall_s = stall_s
        self._stalled: dict[Life, float] = {}
        """Lives under which a stream came to a halt, and when."""
        self._proven: dict[Life, float] = {}
        """Lives that were looked at and made no progress, and when."""

    def note_stall(self, life: Life) -> None:
        """Take in that a stream came to a halt: those who wait there need not wait as long."""
        now_s = time.monotonic()
        self._router.shun(life.instance_id, now_s)
        self._stalled = {
            one: at for one, at in self._stalled.items() if now_s - at <= self._first_s
        }
        self._stalled[life] = now_s

    def note_proof(self, life: Life) -> None:
        """Take in that an instance was looked at and makes no progress: nobody waits there."""
        now_s = time.monotonic()
        self._router.shun(life.instance_id, now_s)
        self._proven = {one: at for one, at in self._proven.items() if now_s - at <= PROOF_S}
        self._proven[life] = now_s

    def is_ejected(self, instance_id: str) -> bool:
        """Return True when the present table has the instance out at once."""
        found = self._router.view.find(instance_id)
        return found is not None and found.state is InstanceState.EJECTED

    @asynccontextmanager
    async def waiting(
        self,
        life: Life,
        may_leave: Callable[[], bool] | None = None,
        *,
        is_last: Callable[[], bool] = lambda: False,
    ) -> AsyncIterator[None]:
        """Wait inside the block for no longer than there is hope.

        A stream is left, too, when nothing came from the instance for anybody for a time: then it
        is no queue that is waited in. Not while `is_last`: nobody else could be asked. An answer
        that comes whole tells nothing before its end; it is left where the instance was proven to
        stand still, if `may_leave` has room for that.

        Raises:
            InstanceFailedError: there is none.
        """
        begun_s, loop, why = time.monotonic(), asyncio.get_running_loop(), ""
        handle: asyncio.TimerHandle

        def look() -> None:
            nonlocal handle, why
            why = self._why_leave(life, begun_s, may_leave, is_last)
            if why:
                limit.reschedule(loop.time())
            else:
                handle = loop.call_later(LOOK_EVERY_S, look)

        handle = loop.call_later(LOOK_EVERY_S, look)
        try:
            async with asyncio.timeout(None) as limit:
                yield
        except TimeoutError:
            if not why:
                raise
            raise InstanceFailedError("broken", why) from None
        finally:
            handle.cancel()

    def _why_leave(
        self,
        life: Life,
        begun_s: float,
        may_leave: Callable[[], bool] | None,
        is_last: Callable[[], bool],
    ) -> str:
        """Return why there is no hope; nothing while there is."""
        if self.is_ejected(life.instance_id):
            return "was taken out before its answer"
        if may_leave is None:
            return STANDS_STILL if self._stands_still(life, begun_s) and not is_last() else ""
        return STANDS_STILL if self._is_proven(life, begun_s) and may_leave() else ""

    def _stands_still(self, life: Life, begun_s: float) -> bool:
        waited_s = time.monotonic() - begun_s
        hope_s = self._stall_s if life in self._stalled else self._first_s
        return waited_s >= hope_s and not self._watch.moved_since(life, begun_s)

    def _is_proven(self, life: Life, begun_s: float) -> bool:
        """Return True for an instance that was looked at, and from which nothing came since."""
        proof_s, now_s = self._proven.get(life), time.monotonic()
        if proof_s is None or now_s - proof_s > PROOF_S:
            return False
        waited_s = now_s - begun_s
        return waited_s >= self._stall_s and not self._watch.moved_since(life, proof_s)
