"""Decides once more about kept inputs, by the same functions; the rules of then give the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime

from gatemesh_common.messages import CommandReport, InstanceObserved, Verdict
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.batch import decide_all
from gatemesh_health_manager.fleet import DEFAULT_POOL, Fleet
from gatemesh_health_manager.inputs import (
    FOLLOWS_CLOCK,
    Input,
    InputKind,
    is_decided,
    measures_of,
    read_fleet,
    see,
    tick_one,
)
from gatemesh_health_manager.ordering import command_id
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import Decision, Flight, InstanceRecord
from gatemesh_health_manager.remembered import Failures

Received = tuple[datetime, Verdict]
"""A verdict, and when the manager got it."""


@dataclass(frozen=True)
class Step:
    """A transition as it is stored, or as a replay made it."""

    at: datetime
    instance_id: str
    incarnation: int
    before: str
    trigger: str
    after: str
    incident_id: str | None
    score: float


@dataclass(frozen=True)
class Changed:
    """A record that was not as decisions had left it when it was next kept."""

    instance_id: str
    at: datetime
    """When it was kept."""
    fields: Mapping[str, tuple[object, object]]
    """What differs, as decisions had left it and as it was kept."""


class Replay:
    """Follows the inputs of one history; `fleet` is what is known after the last one."""

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        self._policies = policies
        """The rules by version."""
        self._failures = Failures()
        self.fleet = Fleet(Policy(), (), ())
        self.changed_outside: dict[str, Changed] = {}
        """By instance, the first time that something else than a decision had changed it."""
        self._began = False

    def begin(self, kept: Input, failures: Sequence[Received]) -> None:
        """Begin with a kept fleet, and the failures on its lives before it."""
        self.take(kept, ())
        for received_at, verdict in failures:
            self._failures.note(self.fleet, [verdict], received_at)

    def take(self, given: Input, verdicts: Sequence[Verdict]) -> list[Decision]:
        """Decide about one input; `verdicts` are those of a batch."""
        policy = self._policies[given.policy_version]
        if given.kind is InputKind.FLEET:
            self._compare(read_fleet(given.body, policy), given.at)
            return []
        self.fleet.policy = policy
        see(self.fleet, given.seen)
        if given.kind is InputKind.VERDICTS:
            return self._judge(verdicts, given.at)
        if given.kind is InputKind.TICK:
            requests: Sequence[tuple[str, int]] = given.body["requests"]
            measures = measures_of(given.body)
            return [
                tick_one(self.fleet, name, count, given.at, measures.get(name, ()))
                for name, count in requests
            ]
        return self._follow(given.event, given.at)

    def _judge(self, verdicts: Sequence[Verdict], now: datetime) -> list[Decision]:
        for verdict in verdicts:
            self.fleet.register(verdict.instance_id, verdict.pool or DEFAULT_POOL, now)
        return judge(self._failures, self.fleet, verdicts, now)

    def _follow(
        self, event: CommandReport | InstanceObserved | Asked, now: datetime
    ) -> list[Decision]:
        if isinstance(event, Asked):
            return self.fleet.answer(event, now)[1]
        record = self.fleet.register(event.instance_id, event.pool or DEFAULT_POOL, now)
        if isinstance(event, CommandReport):
            self.fleet.put(ordered_at_once(record, event))
        return [self.fleet.apply(event.instance_id, event, now)]

    def _compare(self, kept: Fleet, at: datetime) -> None:
        for name, record in kept.records.items() if self._began else ():
            found = changed_fields(self.fleet.records.get(name), record)
            if found:
                self.changed_outside.setdefault(name, Changed(name, at, found))
        self._began = True
        self.fleet = kept


def ordered_at_once(record: InstanceRecord, report: CommandReport) -> InstanceRecord:
    """Return a record in whose history a command did not wait to be ordered until it was due.

    So it was before commands waited as wishes: a report comes of what is only wanted.
    """
    if record.wanted is None or record.flight is not None:
        return record
    sent = record.having(fence=record.fence + 1, wanted=None, wanted_from=None)
    if command_id(record.wanted, sent) != report.command_id:
        return record
    return sent.having(flight=Flight(report.command_id, record.wanted, report.timestamp))


def changed_fields(
    before: InstanceRecord | None, kept: InstanceRecord
) -> dict[str, tuple[object, object]]:
    """Return what differs and is no matter of the clock, as it was left and as it was kept."""
    if before is None:
        return {"instance_id": (None, kept.instance_id)}
    before, kept = untraced(before), untraced(kept)
    if not is_decided(before, kept):
        return {}
    names = [field.name for field in fields(kept) if field.name not in FOLLOWS_CLOCK]
    pairs = {name: (getattr(before, name), getattr(kept, name)) for name in names}
    return {name: (left, right) for name, (left, right) in pairs.items() if left != right}


def untraced(record: InstanceRecord) -> InstanceRecord:
    """Return a record without the trace of its incident: history from before it has none."""
    incident = record.incident
    if incident is None:
        return record
    return replace(record, incident=replace(incident, traceparent=None))


def judge(
    failures: Failures, fleet: Fleet, verdicts: Sequence[Verdict], now: datetime
) -> list[Decision]:
    """Decide about a batch of verdicts on registered instances, and remember its failures."""
    copies = failures.copies(fleet, verdicts)
    failures.note(fleet, verdicts, now)
    facts = failures.facts(fleet.policy, fleet, verdicts, now)
    return decide_all(fleet, verdicts, facts, copies, now)


def steps_of(decisions: Sequence[Decision], at: datetime) -> list[Step]:
    """Return the transitions of decisions that were taken at one moment."""
    return [
        Step(
            at,
            decision.record.instance_id,
            step.incarnation,
            step.before.value,
            step.trigger.value,
            step.after.value,
            step.incident_id,
            step.score,
        )
        for decision in decisions
        for step in decision.transitions
    ]
