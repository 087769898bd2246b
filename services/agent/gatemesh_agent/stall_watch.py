"""The watchdog at work: quiet instances are looked at, stalled ones reported."""

import asyncio
import logging
import time
from collections.abc import Callable

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.metrics import STALL_CHECKS
from gatemesh_agent.reporting import Life, Reporter
from gatemesh_agent.stall_check import Stall, StallCheck
from gatemesh_agent.watchdog import Quiet, Watch
from gatemesh_common.messages import Attribution, CheckLevel, Outcome, Reason

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
AGAIN_S = 60.0
"""Pause after a verdict about a life."""
SOON_S = 10.0
"""Pause after a look that found nothing."""


def nobody(_life: Life) -> None:
    """Tell nobody."""


class StallWatch:
    """Looks every second who is quiet, and has each looked at, once at a time."""

    def __init__(
        self,
        *,
        watch: Watch,
        check: StallCheck,
        reporter: Reporter,
        is_out: Callable[[str], bool],
        threshold_s: float,
        heed: Callable[[Life], None] = nobody,
    ) -> None:
        self._heed = heed
        """Told of each life that makes no progress."""
        self._watch = watch
        self._check = check
        self._reporter = reporter
        self._is_out = is_out
        self._threshold_s = threshold_s
        self._looking: dict[Life, asyncio.Task[None]] = {}
        self._rest_until: dict[Life, float] = {}

    async def run(self) -> None:
        """Look until cancelled."""
        try:
            while True:
                self.look(time.monotonic())
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            for task in list(self._looking.values()):
                task.cancel()

    def look(self, now_s: float) -> None:
        """Begin to look at each quiet life that may be accused."""
        self._rest_until = {life: at for life, at in self._rest_until.items() if at > now_s}
        for quiet in list(self._watch.quiet(now_s)):
            life = quiet.life
            resting = life in self._rest_until or life in self._looking
            if not resting and self._matters(life):
                self._looking[life] = asyncio.create_task(self._work(quiet))

    def _matters(self, life: Life) -> bool:
        """Return False where nothing comes of a look.

        One that drains, or is out for another reason, is not accused; but its requests may leave.
        """
        return self._heed is not nobody or not self._is_out(life.instance_id)

    async def _work(self, quiet: Quiet) -> None:
        life, begun_s = quiet.life, time.monotonic()
        rest_s = SOON_S
        try:
            stall = await self._check.look(quiet, lambda: self._watch.moved_since(life, begun_s))
            STALL_CHECKS.labels(found=outcome_of(stall)).inc()
            if stall is not None:
                self._heed(life)
                if not self._is_out(life.instance_id):
                    rest_s = AGAIN_S
                    self._report(quiet, stall, time.monotonic() - begun_s)
        except Exception:
            log.exception("stall_check_failed_itself", extra={"instance_id": life.instance_id})
        finally:
            self._looking.pop(life, None)
            self._rest_until[life] = time.monotonic() + rest_s

    def _report(self, quiet: Quiet, stall: Stall, took_s: float) -> None:
        life, origin = quiet.life, quiet.longest.request.origin
        quiet_s = quiet.quiet_s + took_s
        judgement = Judgement(
            CheckLevel.L3,
            Outcome.FAILED,
            Reason.STALLED,
            hard=stall.hard,
            score=round(quiet_s, 3),
            threshold=self._threshold_s,
        )
        details = {
            "by": "watchdog",
            "quiet_s": round(quiet_s, 3),
            "waiting": quiet.waiting,
            "counters": stall.counters,
            "own_generation": stall.own,
        }
        self._reporter.count(judgement, life)
        verdict = self._reporter.verdict(judgement, 0, origin, life, details)
        # What everybody waits for is no single request's fault.
        ruling = Attribution.INSTANCE if stall.hard else Attribution.UNKNOWN
        self._reporter.publish(verdict.model_copy(update={"attribution": ruling}))
        log.warning("instance_stalled", extra={"instance_id": life.instance_id, **details})


def outcome_of(stall: Stall | None) -> str:
    """Return what a look found, in a word."""
    if stall is None:
        return "nothing"
    return "hard" if stall.hard else "soft"
