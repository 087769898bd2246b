"""A pool in memory that repeats, forgets and reloads, and checks more after every step."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from gatemesh_common.messages import Action, CommandReport, InstanceObserved, InstanceState
from gatemesh_health_manager.facts import Facts
from gatemesh_health_manager.fleet import Fleet
from gatemesh_health_manager.inputs import fleet_body, read_fleet
from gatemesh_health_manager.ordering import ENDS_OR_CHANGES_A_LIFE
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import Condition, Decision, InstanceRecord
from gatemesh_health_manager.states import SERVING, TRANSITIONS, Trigger
from gatemesh_health_manager.store_rows import (
    incident_row,
    instance_row,
    read_incident,
    read_instance,
)

from .world import World


class WatchedWorld(World):
    """Decides every event twice, as a manager does that dies before its commit."""

    def __init__(self, names: Iterable[str], policy: Policy) -> None:
        super().__init__(names, policy)
        self._used = [policy]
        self.told: dict[str, list[CommandReport | InstanceObserved]] = {}
        """What the executor has said so far, by instance."""

    def reload(self) -> None:
        """Forget everything but what is stored; both forms of it must say the same."""
        kept = json.loads(json.dumps(fleet_body(self.fleet)))
        from_json = read_fleet(kept, self.policy)
        from_rows = [stored(record) for record in self.fleet.records.values()]
        assert from_json.records == self.fleet.records
        assert from_rows == list(self.fleet.records.values())
        self.fleet = Fleet(self.policy, from_json.pools.values(), from_rows)

    def use(self, policy: Policy) -> None:
        """Put other rules in force, as a changed policy file does."""
        self.policy = policy
        self._used.append(policy)
        self.fleet = Fleet(policy, self.fleet.pools.values(), self.fleet.records.values())

    def set_clock(self, hours: int) -> None:
        """Set the manager's clock forward or back."""
        self.now += timedelta(hours=hours)

    def say_again(self, name: str, which: int) -> None:
        """Have something arrive once more that the executor said earlier."""
        said = self.told.get(name, [])
        if said:
            self._apply(name, said[which % len(said)])

    def _apply(self, name: str, event: Any, *facts: Facts) -> None:
        if isinstance(event, CommandReport | InstanceObserved):
            self.told.setdefault(name, []).append(event)
        fleet = self.fleet
        copy = Fleet(self.policy, fleet.pools.values(), fleet.records.values())
        first = copy.apply(name, event, self.now, *facts)
        super()._apply(name, event, *facts)
        assert fleet.records[name] == first.record, "decided otherwise the second time"
        assert fleet.pools == copy.pools

    def _note(self, name: str, decision: Decision) -> None:
        for incident in decision.incidents:
            known = self.incidents.get(incident.incident_id)
            assert known is None or known.ended_at is None, "an ended incident goes on"
        super()._note(name, decision)
        self._check_ways(decision)
        self._check_commands(name, decision)
        assert sum(one.ended_at is None for one in decision.incidents) <= 1

    def _check_ways(self, decision: Decision) -> None:
        for step in decision.transitions:
            assert TRANSITIONS[step.before, step.trigger] is step.after
            returns = step.after in SERVING and step.before not in SERVING
            assert not returns or step.trigger is Trigger.PROBES_PASSED, "back without probation"

    def _check_commands(self, name: str, decision: Decision) -> None:
        record, incident = decision.record, decision.record.incident
        asked = incident is not None and incident.condition is Condition.OPERATOR
        for order in decision.commands:
            command = order.command
            assert (command.instance_id, command.incarnation) == (name, record.incarnation)
            assert command.timestamp == self.now
            assert command.expires_at == order.due_at > self.now
            left_alone = record.state is InstanceState.QUARANTINED
            assert not left_alone or command.action is Action.EJECT, "not left to a person"
            paused = self.fleet.pools["default"].paused and not asked
            assert not paused or command.action not in ENDS_OR_CHANGES_A_LIFE, "paused"
            if command.action in (Action.RESTART, Action.REPLACE) and not asked:
                self._check_restarts(record)

    def _check_restarts(self, record: InstanceRecord) -> None:
        # A command that waits was within the budget of the rules by which it was decided.
        rules = [policy.defaults.restart for policy in self._used]
        since = self.now - timedelta(seconds=rules[0].restart_window_s)
        recent = [moment for moment in record.restarts if since < moment <= self.now]
        assert len(recent) <= max(rule.restarts for rule in rules), "more than the budget"

    def check(self) -> None:
        """Check what holds between any two steps."""
        for name in self.fleet.records:
            self._check_record(name)
        owners = [
            record.incident.incident_id
            for record in self.fleet.records.values()
            if record.incident is not None
        ]
        assert len(owners) == len(set(owners))
        assert set(owners) == {one.incident_id for one in self.open_incidents()}


def stored(record: InstanceRecord) -> InstanceRecord:
    """Return a record as it comes back from the database."""
    incident = record.incident
    if incident is not None:
        incident = read_incident(incident_row(incident, record, "p1"))
    return read_instance(instance_row(replace(record, incident=None)), incident)
