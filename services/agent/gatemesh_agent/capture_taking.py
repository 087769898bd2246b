"""Takes captures beside the traffic: few, in memory only, made and redacted in a thread."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random

from pydantic import ValidationError

from gatemesh_agent.capturing import Place, Subject, Terms, capture_of
from gatemesh_agent.labels import Labels, labels_at
from gatemesh_agent.metrics import CAPTURED, CAPTURES_DROPPED
from gatemesh_agent.recent import Evidence, Window
from gatemesh_agent.reporting import Life
from gatemesh_agent.traffic import Exchange
from gatemesh_agent.transcript import Transcript
from gatemesh_common.capture_limits import CaptureLimits
from gatemesh_common.captures import Capture, CaptureTerms
from gatemesh_common.clock import utc_now
from gatemesh_common.invalid import places_in
from gatemesh_common.messages import Verdict

log = logging.getLogger(__name__)

MOST_WAITING = 50
MOST_WAITING_BYTES = 32 * 2**20


class Captures:
    """Opens what captures are made of, makes them, and hands them to the sender."""

    def __init__(
        self,
        *,
        place: Place,
        labels: Labels,
        put: Callable[[Capture], None],
        version_of: Callable[[Life], Awaitable[str | None]],
        rng: Random,
    ) -> None:
        self._place = place
        self._labels = labels
        self._put = put
        self._version_of = version_of
        self._rng = rng
        self._waiting: deque[Subject] = deque()
        """Oldest first."""
        self._bytes = 0
        self._woken = asyncio.Event()
        # Who has been told nothing keeps figures only.
        self._terms = Terms.of(CaptureTerms(timestamp=utc_now(), pool=place.pool))
        self._limits = CaptureLimits(self._terms.told, rng)

    @property
    def terms(self) -> CaptureTerms:
        """The terms in force."""
        return self._terms.told

    def use(self, terms: CaptureTerms) -> None:
        """Take over the terms that the manager repeats; equal ones change nothing."""
        if self._terms.told.is_as(terms):
            return
        self._terms = Terms.of(terms)
        self._limits = CaptureLimits(terms, self._rng)
        if self._terms.redactor is None:
            log.error("capture_rule_unusable", extra={"pool": terms.pool})
        log.info("capture_terms", extra={"pool": terms.pool, "text": terms.text})

    def open(self, exchange: Exchange) -> Evidence:
        """Return what captures of one answer are made of."""

        def done(window: Window, transcript: Transcript) -> None:
            self._close(exchange, window, transcript)

        return Evidence(self._wants, done, until_end=self._terms.text == "full")

    def _wants(self, verdict: Verdict) -> bool:
        why = self._limits.refuse(verdict, time.monotonic())
        if why is not None:
            CAPTURES_DROPPED.labels(why=why).inc()
        return why is None

    def _close(self, exchange: Exchange, window: Window, transcript: Transcript) -> None:
        said = None if self._terms.text == "none" else tuple(transcript.pieces)
        subject = Subject(window, exchange, said, transcript.finish_reason)
        self._waiting.append(subject)
        self._bytes += subject.held_bytes
        while len(self._waiting) > MOST_WAITING or self._bytes > MOST_WAITING_BYTES:
            self._take()
            CAPTURES_DROPPED.labels(why="waiting").inc()
        self._woken.set()

    def _take(self) -> Subject:
        subject = self._waiting.popleft()
        self._bytes -= subject.held_bytes
        return subject

    async def run(self) -> None:
        """Make captures until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            await self.make_all()

    async def make_all(self) -> None:
        """Make what waits."""
        while self._waiting:
            await self._make(self._take())

    async def _make(self, subject: Subject) -> None:
        life = subject.exchange.life
        place = replace(
            self._place,
            labels=labels_at(self._labels, life.instance_id),
            engine_version=await self._version_of(life),
        )
        try:
            # Rules are an operator's: however slow, they must not hold up answers.
            capture = await asyncio.to_thread(capture_of, subject, self._terms, place)
            self._put(capture)
        except ValidationError as error:
            log.error("capture_refused", extra={"fields": places_in(error)})  # noqa: TRY400 (no values)
            CAPTURES_DROPPED.labels(why="unreadable").inc()
        except ValueError:
            CAPTURES_DROPPED.labels(why="unreadable").inc()
        else:
            CAPTURED.labels(check_level=capture.check_level).inc()
