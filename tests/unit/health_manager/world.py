"""A whole pool in memory: engines, an executor, agents and time, around the real decisions."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from gatemesh_common.messages import (
    Action,
    CheckLevel,
    CommandReport,
    InstanceObserved,
    InstanceState,
    Outcome,
    ReportOutcome,
    Verdict,
)
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.facts import (
    Copies,
    CopyKey,
    Facts,
    Failure,
    copy_key,
    densest_window,
    prompt_key,
)
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.on_verdict import is_failure_of_present_life
from gatemesh_health_manager.ordering import ENDS_OR_CHANGES_A_LIFE
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import CommandOrder, Decision, Incident, Tick
from gatemesh_health_manager.states import Trigger

from .samples import NOW

OWN_CHOICE = {Trigger.CONDEMNED, Trigger.PROVEN, Trigger.FLAPPED, Trigger.WITHDRAWN}
"""Ways out of rotation that are decided; an exit just happens."""
WAITING_STATES = {
    InstanceState.DRAINING,
    InstanceState.RESTARTING,
    InstanceState.REPLACING,
    InstanceState.EJECTED,
}


AT_REST = {InstanceState.HEALTHY, InstanceState.SUSPECT, InstanceState.QUARANTINED}


@dataclass
class Engine:
    """One engine process: which life runs, and whether it answers well."""

    life: int = 1
    running: bool = True
    good: bool = True
    version: str = "v1"
    former: str = "v1"

    @property
    def life_id(self) -> str | None:
        """The name of the life that runs."""
        return f"life-{self.life}" if self.running else None

    def start(self) -> None:
        """Begin another life."""
        self.life += 1
        self.running = True


class World:
    """Delivers events to the real decisions, plays everybody else, and checks every step."""

    def __init__(self, names: Iterable[str], policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.fleet = Fleet(self.policy, [PoolRecord("default")], [])
        self.now = NOW
        self.engines = {name: Engine() for name in names}
        self.orders: dict[str, CommandOrder] = {}
        """Commands in flight, by instance."""
        self.fences: dict[str, int] = defaultdict(int)
        self.incidents: dict[str, Incident] = {}
        self.restarts: dict[str, int] = defaultdict(int)
        self.replacements: dict[str, int] = defaultdict(int)
        self.roll_backs: dict[str, int] = defaultdict(int)
        self._seen: set[str] = set()
        self._failures: dict[tuple[str, int], list[tuple[datetime, str, str]]] = defaultdict(list)
        self._copies: dict[tuple[CopyKey, int], list[datetime]] = defaultdict(list)
        self._serial = 0

    def start_up(self) -> None:
        """Bring every instance into rotation."""
        for name in self.engines:
            self.observe(name)
            self.answer_probes(name)
            self.obey(name)

    # What others do

    def wait(self, seconds: float) -> None:
        """Let time pass, and tick."""
        self.now += timedelta(seconds=seconds)
        for name in list(self.fleet.records):
            self._apply(name, Tick(self._id()))

    def observe(self, name: str) -> None:
        """Have the executor say what it sees."""
        self.now += timedelta(milliseconds=1)
        engine = self.engines[name]
        self.fleet.register(name, "default", self.now)
        event = InstanceObserved(
            timestamp=self.now,
            instance_id=name,
            running=engine.running,
            life_id=engine.life_id,
            base_url="http://127.0.0.1:1",
            model_version=engine.version,
        )
        self._apply(name, event)

    def crash(self, name: str) -> None:
        """End the process."""
        self.engines[name].running = False
        self.observe(name)

    def restart_by_itself(self, name: str) -> None:
        """Begin a life that nobody asked for."""
        self.engines[name].start()
        self.observe(name)

    def obey(self, name: str, outcome: ReportOutcome = ReportOutcome.SUCCEEDED) -> None:
        """Have the executor do what is in flight, and report it."""
        order = self.orders.get(name)
        if order is None:
            return
        self.now += timedelta(milliseconds=1)
        if outcome is ReportOutcome.SUCCEEDED:
            self._act(name, order)
        command = order.command
        event = CommandReport(
            timestamp=self.now,
            instance_id=name,
            command_id=command.message_id,
            action=command.action,
            incarnation=command.incarnation,
            fence=command.fence,
            outcome=outcome,
            life_id=self.engines[name].life_id,
        )
        self._apply(name, event)

    def _act(self, name: str, order: CommandOrder) -> None:
        engine, command = self.engines[name], order.command
        if command.action is Action.DRAIN and engine.life_id == command.life_id:
            engine.running = False
        elif command.action is Action.RESTART and engine.life_id in (command.life_id, None):
            engine.start()
            self.restarts[name] += 1
        elif command.action is Action.REPLACE and engine.life_id in (command.life_id, None):
            engine.start()
            engine.good = True
            self.replacements[name] += 1
        elif command.action is Action.ROLL_BACK and engine.life_id in (command.life_id, None):
            engine.start()
            engine.good = True
            engine.version = engine.former
            self.roll_backs[name] += 1

    def answer_probes(self, name: str) -> None:
        """Have an agent run the probes that are asked for."""
        record = self.fleet.records[name]
        if record.ticket is None:
            return
        engine = self.engines[name]
        good = engine.good and engine.running
        self.deliver(
            [
                self.verdict(
                    name,
                    check_level=CheckLevel.L5,
                    outcome=Outcome.PASSED if good else Outcome.FAILED,
                    request_id=record.ticket.ticket_id,
                )
            ]
        )

    def verdict(self, name: str, **fields: Any) -> Verdict:
        """Return a soft failure of the present life."""
        known: dict[str, Any] = {
            "message_id": self._id(),
            "timestamp": self.now,
            "instance_id": name,
            "request_id": self._id(),
            "check_level": CheckLevel.L1,
            "incarnation": self.fleet.records[name].incarnation,
        }
        return Verdict(**(known | fields))

    def deliver(self, verdicts: Iterable[Verdict]) -> None:
        """Hand in a batch of verdicts as the store does: each once, facts from what is stored."""
        fresh = {v.message_id: v for v in verdicts if v.message_id not in self._seen}
        self._seen |= set(fresh)
        copies = self._copies_of(fresh.values())
        for verdict in fresh.values():
            self._keep(verdict)
        facts = {name: self._facts(name, set(fresh)) for name in self.fleet.records}
        for verdict in fresh.values():
            known = facts[verdict.instance_id]
            if is_failure_of_present_life(self.fleet.records[verdict.instance_id], verdict):
                known = replace(known, copied_at=copies.note(verdict, self.now))
            self._apply(verdict.instance_id, verdict, known)

    def settle(
        self, seconds: int, *, obeying: bool = True, step_s: int = 20, backlog: str | None = None
    ) -> None:
        """Let everybody do their work for a while, or until there is nothing left to do.

        With a choice for the backlog, a person resets the fleet brake whenever it is on.
        """
        for _ in range(0, seconds, step_s):
            if backlog is not None:
                self.reset_brake(backlog)
            if not self.open_incidents() and self.at_rest():
                return
            self.wait(step_s)
            for name in self.engines:
                if obeying:
                    self.observe(name)
                    self.obey(name)
                    self.answer_probes(name)

    def reset_brake(self, backlog: str) -> bool:
        """Have a person take the fleet brake off; False when it is not on."""
        request = Asked.model_validate(
            {
                "timestamp": self.now,
                "requested_by": "alice",
                "action": "reset_brake",
                "backlog": backlog,
            }
        )
        if not self.fleet.reset_brake(request, self.now):
            return False
        for name in list(self.fleet.records):
            self._apply(name, request)
        return True

    @property
    def braked(self) -> bool:
        """True while the fleet brake is on."""
        return self.fleet.facts_of("default").braked

    # What the store does

    def _copies_of(self, verdicts: Iterable[Verdict]) -> Copies:
        found = {}
        for key in map(copy_key, verdicts):
            moments = self._copies[key, self.fleet.records[key[0]].incarnation]
            if moments:
                found[key] = max(moments)
        return Copies(found)

    def _keep(self, verdict: Verdict) -> None:
        record = self.fleet.records[verdict.instance_id]
        if is_failure_of_present_life(record, verdict):
            key = (copy_key(verdict), record.incarnation)
            self._copies[key].append(min(verdict.timestamp, self.now))
        soft = verdict.check_level in self.policy.defaults.condition_a.levels
        if soft and is_failure_of_present_life(record, verdict):
            row = (min(verdict.timestamp, self.now), prompt_key(verdict), verdict.message_id)
            self._failures[record.instance_id, record.incarnation].append(row)

    def _facts(self, name: str, fresh: set[str]) -> Facts:
        record, rule = self.fleet.records[name], self.policy.defaults.condition_a
        since = record.evidence_since
        failures = [
            Failure(at, prompt, fresh=message_id in fresh)
            for at, prompt, message_id in self._failures[name, record.incarnation]
            if since is None or at > since
        ]
        return densest_window(failures, rule.window_s, rule.max_per_prompt, rule.min_prompts)

    def _apply(self, name: str, event: Any, *facts: Facts) -> None:
        before = self.fleet.facts_of("default")
        decision = self.fleet.apply(name, event, self.now, *facts)
        self._check_floor(before.serving, decision)
        self._check_brake(decision, braked=before.braked)
        self._note(name, decision)
        self._check_record(name)

    def _note(self, name: str, decision: Decision) -> None:
        for incident in decision.incidents:
            self.incidents[incident.incident_id] = incident
        for end in decision.ends:
            assert self.orders.pop(name).command.message_id == end.command_id
        for order in decision.commands:
            assert name not in self.orders, "two commands in flight"
            assert order.command.fence > self.fences[name], "a fence that does not rise"
            self.fences[name] = order.command.fence
            self.orders[name] = order

    # What must hold after every step

    def _check_floor(self, serving_before: int, decision: Decision) -> None:
        facts = self.fleet.facts_of("default")
        chosen = any(step.trigger in OWN_CHOICE for step in decision.transitions)
        if chosen and facts.serving < serving_before:
            budget = self.policy.defaults.ejection
            assert facts.serving >= budget.min_in_rotation, "below the floor"
            assert facts.total - facts.serving <= budget.max_out_share * facts.total

    def _check_brake(self, decision: Decision, *, braked: bool) -> None:
        incident = decision.record.incident
        if not braked or (incident is not None and incident.is_wanted):
            return
        # Only operators withdraw.
        forbidden = OWN_CHOICE - {Trigger.WITHDRAWN}
        chosen = any(step.trigger in forbidden for step in decision.transitions)
        assert not chosen, "taken out though the fleet brake is on"
        ended = any(
            order.command.action in ENDS_OR_CHANGES_A_LIFE and decision.record.running
            for order in decision.commands
        )
        assert not ended, "a life ended though the fleet brake is on"

    def _check_record(self, name: str) -> None:
        record = self.fleet.records[name]
        status = record.incident.status if record.incident else None
        assert (record.weight > 0) is record.serving
        assert (record.flight is not None) is (name in self.orders)
        assert record.state not in WAITING_STATES or status == "open"
        shifting = record.shift_until is not None and status == "open"
        assert not record.serving or status in (None, "held") or shifting
        assert record.shift_until is None or (record.serving and record.incident is not None)
        assert record.state is not InstanceState.QUARANTINED or status is None
        assert record.ticket is None or record.serving or record.state in ("probation", "ejected")
        assert (record.ticket_until is not None) is (record.serving and record.ticket is not None)
        mine = [i for i in self.incidents.values() if i.ended_at is None]
        assert len([i for i in mine if i == record.incident]) == (record.incident is not None)

    def _id(self) -> str:
        self._serial += 1
        return f"id-{self._serial}"

    # What tests ask

    def states(self) -> dict[str, InstanceState]:
        """Return the state of every instance."""
        return {name: record.state for name, record in self.fleet.records.items()}

    def at_rest(self) -> bool:
        """True when no instance is on its way to another state."""
        return set(self.states().values()) <= AT_REST

    def open_incidents(self) -> list[Incident]:
        """Return the incidents that have not ended."""
        return [incident for incident in self.incidents.values() if incident.ended_at is None]
