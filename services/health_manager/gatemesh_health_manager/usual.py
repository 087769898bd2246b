"""How long things usually took in a stretch of history, and what became of its instances."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from gatemesh_common.messages import Action, InstanceState, Outcome, Verdict
from gatemesh_health_manager.record import Condition, Decision
from gatemesh_health_manager.states import SERVING

DEFAULT_S: Mapping[Action, float] = {
    Action.DRAIN: 30.0,
    Action.EJECT: 1.0,
    Action.READMIT: 1.0,
    Action.REPAIR: 10.0,
    Action.RESTART: 120.0,
    Action.REPLACE: 300.0,
    Action.ROLL_BACK: 150.0,
}
"""Where a history holds no such command."""
DEFAULT_SUITE_S = 5.0
EVIDENCE_SPAN = timedelta(minutes=10)
"""A failure longer before an instance went out is not counted as the first sign of it."""
CONDITIONS = frozenset({Condition.A, Condition.B, Condition.C, Condition.D, Condition.OWN})


@dataclass(frozen=True)
class Usual:
    """Medians of a history, in seconds."""

    command_s: Mapping[Action, float]
    suite_s: float = DEFAULT_SUITE_S


class Stopwatch:
    """Measures commands and suites of a replay."""

    def __init__(self) -> None:
        self._commands: dict[str, tuple[Action, datetime]] = {}
        self._tickets: dict[str, datetime] = {}
        self._took: dict[Action, list[float]] = defaultdict(list)
        self._suites: list[float] = []

    def note(self, decisions: Iterable[Decision], at: datetime) -> None:
        """Take in what was decided at a moment."""
        for decision in decisions:
            for end in decision.ends:
                action, began = self._commands.pop(end.command_id, (None, at))
                if action is not None and end.outcome == "succeeded":
                    self._took[action].append((at - began).total_seconds())
            for order in decision.commands:
                self._commands[order.command.message_id] = (order.command.action, at)
            self._note_ticket(decision, at)

    def _note_ticket(self, decision: Decision, at: datetime) -> None:
        ticket = decision.record.ticket
        if ticket is not None:
            self._tickets.setdefault(ticket.ticket_id, at)
        elif decision.record.closed_tickets:
            began = self._tickets.pop(decision.record.closed_tickets[-1], None)
            if began is not None:
                self._suites.append((at - began).total_seconds())

    def usual(self) -> Usual:
        """Return the medians."""
        took = {action: statistics.median(found) for action, found in self._took.items()}
        suite_s = statistics.median(self._suites) if self._suites else DEFAULT_SUITE_S
        return Usual({**DEFAULT_S, **took}, suite_s)


@dataclass(frozen=True)
class Episode:
    """One incident of conditions A to D, as a replay saw it."""

    incident_id: str
    instance_id: str
    pool: str
    condition: str
    opened_at: datetime
    status: str
    isolated_s: float | None = None
    """From the first sign to out of rotation; None while it went on serving."""


class Ledger:
    """Keeps the incidents of a replay, and the time that instances were out of rotation."""

    def __init__(self) -> None:
        self._episodes: dict[str, Episode] = {}
        self._signs: dict[str, list[datetime]] = defaultdict(list)
        self._out_since: dict[str, datetime] = {}
        self._out_s: dict[str, float] = defaultdict(float)

    def note_signs(self, verdicts: Iterable[Verdict], at: datetime) -> None:
        """Take in the failures among verdicts."""
        for verdict in verdicts:
            if verdict.outcome is Outcome.FAILED:
                self._signs[verdict.instance_id].append(min(verdict.timestamp, at))

    def note(self, decisions: Iterable[Decision], at: datetime) -> None:
        """Take in what was decided at a moment."""
        for decision in decisions:
            for incident in decision.incidents:
                if incident.condition in CONDITIONS:
                    known = self._episodes.get(incident.incident_id)
                    self._episodes[incident.incident_id] = Episode(
                        incident.incident_id,
                        decision.record.instance_id,
                        decision.record.pool,
                        incident.name,
                        incident.opened_at,
                        incident.status,
                        known.isolated_s if known else None,
                    )
            for step in decision.transitions:
                self._move(decision, step.before, step.after, at)

    def _move(
        self, decision: Decision, before: InstanceState, after: InstanceState, at: datetime
    ) -> None:
        name = decision.record.instance_id
        if before in SERVING and after not in SERVING:
            self._out_since[name] = at
            self._isolate(name, at)
        elif after in SERVING and name in self._out_since:
            self._out_s[name] += (at - self._out_since.pop(name)).total_seconds()
            self._signs[name].clear()

    def _isolate(self, name: str, at: datetime) -> None:
        signs = [sign for sign in self._signs[name] if at - sign <= EVIDENCE_SPAN]
        mine = [one for one in self._episodes.values() if one.instance_id == name]
        if not mine or not signs:
            return
        last = max(mine, key=lambda one: one.opened_at)
        if last.isolated_s is None:
            took_s = (at - min(signs)).total_seconds()
            self._episodes[last.incident_id] = replace(last, isolated_s=took_s)

    def episodes(self, since: datetime) -> list[Episode]:
        """Return the incidents that opened from a moment on, in order."""
        found = (one for one in self._episodes.values() if one.opened_at >= since)
        return sorted(found, key=lambda one: (one.opened_at, one.instance_id))

    def out_s(self, until: datetime) -> float:
        """Return the instance seconds out of rotation, of instances that had been in it."""
        open_s = sum((until - since).total_seconds() for since in self._out_since.values())
        return sum(self._out_s.values()) + open_s


def median_isolated_s(episodes: Sequence[Episode]) -> float | None:
    """Return the median time to isolate, of those that were isolated."""
    found = [one.isolated_s for one in episodes if one.isolated_s is not None]
    return statistics.median(found) if found else None
