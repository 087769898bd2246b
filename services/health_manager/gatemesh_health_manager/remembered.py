"""Failures in memory: gives the facts around a batch that the database gives the manager."""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from gatemesh_common.messages import Attribution, Outcome, Verdict
from gatemesh_health_manager.batch import Counting, counted, gathered
from gatemesh_health_manager.conditions import counts_for
from gatemesh_health_manager.facts import (
    Copies,
    CopyKey,
    Facts,
    Failure,
    copy_key,
    evidence_time,
    prompt_key,
)
from gatemesh_health_manager.fleet import Fleet
from gatemesh_health_manager.on_verdict import is_failure_of_present_life
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import InstanceRecord


class Remembered(NamedTuple):
    """One failure, in the order of windows."""

    at: datetime
    verdict: Verdict
    batch: int


Life = tuple[str, int]
"""Instance and incarnation."""


class Failures:
    """Every failure that may count, by life; grows with failures, not with verdicts."""

    def __init__(self) -> None:
        self._by_life: dict[Life, list[Remembered]] = defaultdict(list)
        self._latest: dict[tuple[Life, CopyKey], datetime] = {}
        self._batch = 0

    def copies(self, fleet: Fleet, verdicts: Iterable[Verdict]) -> Copies:
        """Return when the prompts of these failures last failed before on the present life."""
        known = {}
        for verdict in verdicts:
            record, key = fleet.records[verdict.instance_id], copy_key(verdict)
            at = self._latest.get(((verdict.instance_id, record.incarnation), key))
            if at is not None and is_failure_of_present_life(record, verdict):
                known[key] = at
        return Copies(known)

    def note(self, fleet: Fleet, verdicts: Iterable[Verdict], now: datetime) -> None:
        """Take in a batch; one without incarnation is about the present life."""
        self._batch += 1
        for verdict in verdicts:
            failed = verdict.outcome is Outcome.FAILED
            if failed and verdict.attribution is not Attribution.REQUEST:
                number = verdict.incarnation
                if number is None:
                    number = fleet.records[verdict.instance_id].incarnation
                self._put((verdict.instance_id, number), verdict, evidence_time(verdict, now))

    def _put(self, life: Life, verdict: Verdict, at: datetime) -> None:
        insort(self._by_life[life], Remembered(at, verdict, self._batch), key=moment_of)
        key = (life, copy_key(verdict))
        self._latest[key] = max(at, self._latest.get(key, at))

    def facts(
        self, policy: Policy, fleet: Fleet, verdicts: Sequence[Verdict], now: datetime
    ) -> dict[str, Facts]:
        """Return the densest window around the batch noted last, for instances where it matters."""
        return gathered(
            (counting, self._windows(counting, fleet, now))
            for counting in counted(policy, fleet, verdicts)
        )

    def _windows(self, counting: Counting, fleet: Fleet, now: datetime) -> dict[str, Facts]:
        moments: dict[str, list[datetime]] = defaultdict(list)
        for verdict in counting.verdicts:
            moments[verdict.instance_id].append(evidence_time(verdict, now))
        return {
            name: counting.densest(self._around(counting, fleet.records[name], found))
            for name, found in moments.items()
        }

    def _around(
        self, counting: Counting, record: InstanceRecord, moments: Sequence[datetime]
    ) -> Iterator[Failure]:
        known = self._by_life[record.instance_id, record.incarnation]
        span = timedelta(seconds=counting.rule.window_s)
        first = bisect_left(known, min(moments) - span, key=moment_of)
        if record.evidence_since is not None:
            first = max(first, bisect_right(known, record.evidence_since, key=moment_of))
        last = bisect_right(known, max(moments) + span, key=moment_of)
        for each in known[first:last]:
            if counts_for(each.verdict, counting.rule):
                tenant = each.verdict.tenant if counting.by_tenant else None
                fresh = each.batch == self._batch
                yield Failure(each.at, prompt_key(each.verdict), fresh, tenant or "")


def moment_of(failure: Remembered) -> datetime:
    """Return when it happened."""
    return failure.at
