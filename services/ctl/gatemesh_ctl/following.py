"""Following a request from the manager's decision to its end, through the views."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from gatemesh_common.messages import ActionRequest, TrialRequest
from gatemesh_ctl.actions import POOL_ACTIONS
from gatemesh_ctl.store import Row
from gatemesh_ctl.watching import key_of

POLL_S = 0.5
AT_ONCE = (*POOL_ACTIONS, "set_weight")
"""Actions that are over once they are accepted."""
SAME_MOMENT = timedelta(seconds=1)
"""The decision and the incident it opens are stored in one transaction."""


class Ending(StrEnum):
    """How a request ended for the one who asked."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    UNDECIDED = "undecided"
    """The time was over first; it may still be carried out."""


@dataclass(frozen=True)
class Followed:
    """The end of a request, and why."""

    ending: Ending
    why: str
    incident_id: str | None = None


class History(Protocol):
    """What is read of the database."""

    def request(self, message_id: str) -> Row | None:
        """Return how a request was decided; None while it is not."""

    def operator_incident(self, instance_id: str, since: datetime) -> Row | None:
        """Return the incident that the request opened."""

    def pool_incidents(self, pool: str, playbook: str, since: datetime) -> list[Row]:
        """Return the incidents that a request about a whole pool opened."""

    def incident_timeline(self, incident: Row) -> list[Row]:
        """Return all that belongs to an incident."""


@dataclass
class Follower:
    """Follows one request until it ends or the time is over; hands each new event to `tell`."""

    history: History
    request: ActionRequest
    tell: Callable[[Row], None]
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _told: set[tuple[Any, ...]] = field(default_factory=set)

    def follow(self, limit_s: float) -> Followed:
        """Return how it ended."""
        for _ in self._ticks(limit_s):
            decided = self.history.request(self.request.message_id)
            if decided is None:
                continue
            if decided["outcome"] == "refused":
                return Followed(Ending.REFUSED, decided["why"])
            if isinstance(self.request, TrialRequest):
                return Followed(Ending.DONE, f"nothing was done; it would: {decided['why']}")
            if self.request.action in AT_ONCE:
                return Followed(Ending.DONE, decided["why"] or "accepted")
            whole_pool = self.request.instance_id is None
            look = self._look_at_pool if whole_pool else self._look_at_incident
            ended = look(decided)
            if ended is not None:
                return ended
        return Followed(Ending.UNDECIDED, f"not ended in {limit_s:g} s")

    def _look_at_incident(self, decided: Row) -> Followed | None:
        since = decided["decided_at"] - SAME_MOMENT
        incident = self.history.operator_incident(str(self.request.instance_id), since)
        if incident is None:
            return None
        # What happened before the request is evidence for others.
        events = [
            row
            for row in self.history.incident_timeline(incident)
            if row["kind"] != "verdict" and row["at"] >= since
        ]
        # By what they are, not by their number: a report has the executor's moment and comes late.
        for event in events:
            if key_of(event) not in self._told:
                self._told.add(key_of(event))
                self.tell(event)
        return judge(self.request.action, incident)

    def _look_at_pool(self, decided: Row) -> Followed | None:
        since = decided["decided_at"] - SAME_MOMENT
        request = self.request
        rows = self.history.pool_incidents(request.pool, request.action, since)
        ends = [(row["instance_id"], judge(request.action, row)) for row in rows]
        told = [f"{name}: {ended.why}" for name, ended in ends if ended is not None]
        if not rows or len(told) < len(rows):
            return None
        done = all(ended.ending is Ending.DONE for _, ended in ends if ended is not None)
        return Followed(Ending.DONE if done else Ending.FAILED, "; ".join(told))

    def _ticks(self, limit_s: float) -> Iterator[None]:
        deadline = self.now() + limit_s
        yield
        while self.now() < deadline:
            self.sleep(POLL_S)
            yield


def judge(action: str, incident: Row) -> Followed | None:
    """Say whether an ended incident is what was asked for; None while it is under way."""
    status = incident["status"]
    if status in ("open", "held"):
        return None
    wanted = "quarantined" if action in ("drain", "quarantine") else "resolved"
    ending = Ending.DONE if status == wanted else Ending.FAILED
    return Followed(ending, f"{status}: {incident['reason']}", incident["incident_id"])
