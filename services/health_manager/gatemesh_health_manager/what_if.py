"""What other rules would have done with a stretch of history.

The evidence is what was recorded. The rest of the world is a model, since other decisions were
never carried out: commands succeed after the usual time, a proof is confirmed by its probes,
a new life passes them, and an instance out of rotation gives no evidence.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import NamedTuple

from gatemesh_common.messages import (
    Action,
    CheckLevel,
    CommandReport,
    InstanceObserved,
    InstanceState,
    Outcome,
    Reason,
    ReportOutcome,
    Verdict,
    derived_id,
)
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.fleet import DEFAULT_POOL
from gatemesh_health_manager.history import Given, History
from gatemesh_health_manager.inputs import EVENTS, InputKind, measures_of, read_fleet, see, tick_one
from gatemesh_health_manager.on_verdict import is_about_present_life, tickets_named
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import CommandOrder, Decision, InstanceRecord
from gatemesh_health_manager.remembered import Failures
from gatemesh_health_manager.replaying import Replay, judge
from gatemesh_health_manager.states import UNATTENDED, IllegalTransitionError
from gatemesh_health_manager.usual import Ledger, Stopwatch, Usual

TICK = timedelta(seconds=1)
STARTS = frozenset({Action.RESTART, Action.REPLACE, Action.ROLL_BACK})


class Due(NamedTuple):
    """Something that the model of the world does at a moment."""

    at: datetime
    number: int
    act: Callable[[datetime], None]


@dataclass(frozen=True)
class Outcomes:
    """What was decided, and what other rules would have decided."""

    stored: Ledger
    other: Ledger


def what_if(history: History, policy: Policy) -> Outcomes:
    """Play a history under other rules; its inputs are gone through twice."""
    stopwatch, then = Stopwatch(), Replay(history.policies)
    then.begin(history.begin, history.earlier)
    for given in history.inputs:
        stopwatch.note(then.take(given.input, given.verdicts), given.input.at)
    return WhatIf(history, policy, stopwatch.usual()).run()


class WhatIf:
    """Two fleets side by side: as it was, and as it would have been."""

    def __init__(self, history: History, policy: Policy, usual: Usual) -> None:
        self._history = history
        self._usual = usual
        self._then = Replay(history.policies)
        self._then.begin(history.begin, history.earlier)
        self._fleet = read_fleet(history.begin.body, policy)
        self._failures = Failures()
        for received_at, verdict in history.earlier:
            self._failures.note(self._fleet, [verdict], received_at)
        self._due: list[Due] = []
        self._numbers = count()
        self._asked: set[str] = set()
        """Tickets that the model has taken on."""
        self._now = history.begin.at
        self._outcomes = Outcomes(Ledger(), Ledger())

    def run(self) -> Outcomes:
        """Return what became of both."""
        for record in list(self._fleet.records.values()):
            # Reports of commands under way are not to be had without the order; they fall due.
            self._answer(record)
        for given in self._history.inputs:
            at = given.input.at
            self._pass_time(at)
            see(self._fleet, given.input.seen)
            before = dict(self._then.fleet.records)
            decisions = self._then.take(given.input, given.verdicts)
            self._outcomes.stored.note_signs(given.verdicts, at)
            self._outcomes.stored.note(decisions, at)
            self._feed(given, before)
        return self._outcomes

    # Time

    def _pass_time(self, until: datetime) -> None:
        """Tick each second while something waits, and do what the model has to do meanwhile."""
        while True:
            ticking = [name for name, one in self._fleet.records.items() if is_waiting(one)]
            next_tick = self._now + TICK if ticking else until
            next_due = self._due[0].at if self._due else until
            moment = min(next_tick, next_due)
            if moment >= until:
                break
            self._now = max(self._now, moment)
            if next_due <= next_tick:
                heapq.heappop(self._due).act(self._now)
            else:
                self._tick(ticking)
        self._now = max(self._now, until)

    def _tick(self, names: Sequence[str]) -> None:
        for name in names:
            with suppress(IllegalTransitionError):
                # The manager tells it and goes on with the others, too.
                self._note([tick_one(self._fleet, name, 0, self._now)])

    def _later(self, at: datetime, act: Callable[[datetime], None]) -> None:
        heapq.heappush(self._due, Due(max(at, self._now), next(self._numbers), act))

    # What was recorded

    def _feed(self, given: Given, before: Mapping[str, InstanceRecord]) -> None:
        if given.input.kind is InputKind.VERDICTS:
            self._judge(list(self._evidence(given.verdicts, before)))
        elif given.input.kind is InputKind.TICK:
            for name, measures in measures_of(given.input.body).items():
                if name in self._fleet.records:
                    self._note([tick_one(self._fleet, name, 0, self._now, measures)])
        elif given.input.kind in EVENTS:
            event = given.input.event
            if isinstance(event, Asked):
                self._note(self._fleet.answer(event, self._now)[1])
            elif isinstance(event, InstanceObserved):
                self._observe(event, before)

    def _evidence(
        self, verdicts: Sequence[Verdict], before: Mapping[str, InstanceRecord]
    ) -> Iterator[Verdict]:
        """Yield what was said of lives of then as if it were said of the present ones."""
        for verdict in verdicts:
            record = self._fleet.register(
                verdict.instance_id, verdict.pool or DEFAULT_POOL, self._now
            )
            then = before.get(verdict.instance_id)
            if then is not None and not is_about_present_life(then, verdict):
                continue
            fields: dict[str, object] = {"incarnation": record.incarnation}
            if then is not None and then.ticket and then.ticket.ticket_id in tickets_named(verdict):
                fields |= answering(record, verdict)
            if record.serving or (record.ticket and "request_id" in fields):
                yield verdict.model_copy(update=fields)

    def _judge(self, verdicts: Sequence[Verdict]) -> None:
        self._outcomes.other.note_signs(verdicts, self._now)
        self._note(judge(self._failures, self._fleet, verdicts, self._now))

    def _observe(self, event: InstanceObserved, before: Mapping[str, InstanceRecord]) -> None:
        """Pass on what happened by itself; what was ordered then was not ordered now."""
        then = before.get(event.instance_id)
        own = self._fleet.register(event.instance_id, event.pool or DEFAULT_POOL, self._now)
        if own.observed and then is not None and then.state in UNATTENDED:
            return
        self._note([self._fleet.apply(event.instance_id, event, self._now)])

    # The model

    def _note(self, decisions: Sequence[Decision]) -> None:
        self._outcomes.other.note(decisions, self._now)
        for decision in decisions:
            for order in decision.commands:
                self._obey(order)
            self._answer(decision.record)

    def _obey(self, order: CommandOrder) -> None:
        command = order.command
        took = timedelta(seconds=self._usual.command_s[command.action])

        def report(now: datetime) -> None:
            record = self._fleet.records[command.instance_id]
            life_id = record.life_id
            if command.action in STARTS:
                life_id = derived_id("life", command.message_id)
            elif command.action is Action.DRAIN:
                life_id = None
            event = CommandReport(
                timestamp=now,
                instance_id=command.instance_id,
                pool=command.pool,
                command_id=command.message_id,
                action=command.action,
                incarnation=command.incarnation,
                fence=command.fence,
                outcome=ReportOutcome.SUCCEEDED,
                life_id=life_id,
            )
            self._note([self._fleet.apply(command.instance_id, event, now)])

        self._later(self._now + took, report)

    def _answer(self, record: InstanceRecord) -> None:
        ticket = record.ticket
        if ticket is None or ticket.ticket_id in self._asked:
            return
        self._asked.add(ticket.ticket_id)
        outcome = Outcome.FAILED if ticket.purpose == "confirm" else Outcome.PASSED

        def answer(now: datetime) -> None:
            present = self._fleet.records[record.instance_id]
            if present.ticket is None or present.ticket.ticket_id != ticket.ticket_id:
                return
            suite = Verdict(
                message_id=derived_id("suite", ticket.ticket_id),
                timestamp=now,
                instance_id=record.instance_id,
                pool=record.pool,
                incarnation=present.incarnation,
                request_id=ticket.ticket_id,
                check_level=CheckLevel.L5,
                outcome=outcome,
                reason=Reason.CLEAN if outcome is Outcome.PASSED else Reason.PROBES_FAILED,
            )
            self._judge([suite])

        self._later(self._now + timedelta(seconds=self._usual.suite_s), answer)


def answering(record: InstanceRecord, verdict: Verdict) -> dict[str, object]:
    """Return what makes a recorded suite the answer to the present ticket, or to none."""
    details = {key: value for key, value in verdict.details.items() if key != "ticket_id"}
    if record.ticket is not None:
        return {"details": details, "request_id": record.ticket.ticket_id}
    return {"details": details}


def is_waiting(record: InstanceRecord) -> bool:
    """True where the passing of time may decide something."""
    moments = (record.due_at, record.shift_until, record.probe_from, record.flight, record.wanted)
    suspect = record.state is InstanceState.SUSPECT
    return record.observed and (any(moments) or record.incident is not None or suspect)
