"""What decisions were made of, in a form that is kept: the same inputs give them once more."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from gatemesh_common.messages import CommandReport, InstanceObserved, derived_id
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.measuring import Measures
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import Decision, InstanceRecord, Tick
from gatemesh_health_manager.states import IllegalTransitionError
from gatemesh_health_manager.storable import Row, storable

POOLS = TypeAdapter(tuple[PoolRecord, ...])
RECORDS = TypeAdapter(tuple[InstanceRecord, ...])
MEASURES = TypeAdapter(dict[str, Measures])
NO_MEASURES: Mapping[str, Measures] = MappingProxyType({})
FOLLOWS_CLOCK = ("weight", "observed_at")
"""Fields of an instance that change without a decision that must be kept."""

Event = CommandReport | InstanceObserved | Asked


class InputKind(StrEnum):
    """What one input is."""

    FLEET = "fleet"
    """Every record as it was at that moment; a replay begins with one."""
    VERDICTS = "verdicts"
    """A batch; its verdicts are the stored ones with the same `received_at`, in order of id."""
    REPORT = "report"
    OBSERVATION = "observation"
    REQUEST = "request"
    TICK = "tick"
    """The passing of time, of those instances about which it decided something."""

    @classmethod
    def of(cls, event: CommandReport | InstanceObserved) -> "InputKind":
        """Return the kind of an event."""
        return cls.REPORT if isinstance(event, CommandReport) else cls.OBSERVATION


EVENTS: Mapping[InputKind, type[Event]] = {
    InputKind.REPORT: CommandReport,
    InputKind.OBSERVATION: InstanceObserved,
    InputKind.REQUEST: Asked,
}


@dataclass(frozen=True)
class Input:
    """One thing that was decided about, in the order of deciding."""

    at: datetime
    kind: InputKind
    policy_version: str
    pools: tuple[str, ...]
    body: Mapping[str, Any]
    seen: Mapping[str, str]
    """When the executor had last looked, by instance; kept where it may have mattered."""

    @property
    def event(self) -> Event:
        """The message of a report, an observation or a request."""
        return EVENTS[self.kind].model_validate(self.body)


def input_row(kind: InputKind, body: Row, fleet: Fleet, version: str, now: datetime) -> Row:
    """Return the row of an input about the pools of a fleet."""
    return {
        "at": now,
        "kind": kind.value,
        "policy_version": version,
        "pools": sorted(fleet.pools),
        "body": body,
    }


def message_body(event: Event) -> Row:
    """Return a message as JSON."""
    body: Row = storable(event.model_dump(mode="json"))
    return body


def fleet_body(fleet: Fleet) -> Row:
    """Return every record as JSON."""
    return {
        "pools": POOLS.dump_python(tuple(fleet.pools.values()), mode="json"),
        "instances": RECORDS.dump_python(tuple(fleet.records.values()), mode="json"),
    }


def read_fleet(body: Mapping[str, Any], policy: Policy) -> Fleet:
    """Return the fleet of its JSON.

    Raises:
        pydantic.ValidationError: it is none.
    """
    pools = POOLS.validate_python(body["pools"])
    return Fleet(policy, pools, RECORDS.validate_python(body["instances"]))


def tick_one(
    fleet: Fleet, instance_id: str, requests: int, now: datetime, measures: Measures = ()
) -> Decision:
    """Let time pass for one instance."""
    tick = Tick(derived_id("tick", instance_id, now.isoformat()), requests, measures)
    return fleet.apply(instance_id, tick, now)


def is_due(fleet: Fleet, pool: str, requests: Mapping[str, int], now: datetime) -> bool:
    """Return True where the passing of time changes something in a pool; tries it on the fleet."""
    try:
        for record in fleet.members(pool):
            if record.observed:
                tick_one(fleet, record.instance_id, requests.get(record.instance_id, 0), now)
    except IllegalTransitionError:
        # Whoever ticks in earnest tells of it.
        return True
    members = fleet.members(pool)
    changed = any(fleet.stored[record.instance_id] != record for record in members)
    return changed or fleet.pools[pool] != fleet.loaded[pool]


def is_decided(before: InstanceRecord, after: InstanceRecord) -> bool:
    """True where more has changed than what follows the clock: the weight, and the last look."""
    if before is after:
        return False
    return replace(before, **{name: getattr(after, name) for name in FOLLOWS_CLOCK}) != after


def ticks_body(
    before: Mapping[str, InstanceRecord],
    fleet: Fleet,
    requests: Mapping[str, int],
    measures: Mapping[str, Measures] = NO_MEASURES,
) -> Row:
    """Return of which instances a tick has decided something, in its order; nothing for none."""
    decided = [name for name, record in before.items() if is_decided(record, fleet.records[name])]
    if not decided:
        return {}
    known = {name: measures[name] for name in decided if measures.get(name)}
    # A list: the database does not keep the order of keys.
    body: Row = {"requests": [[name, requests.get(name, 0)] for name in decided]}
    return body | ({"measures": MEASURES.dump_python(known, mode="json")} if known else {})


def measures_of(body: Mapping[str, Any]) -> dict[str, Measures]:
    """Return what the telemetry of a kept tick said, by instance."""
    return MEASURES.validate_python(body.get("measures", {}))


def is_weighty(decision: Decision) -> bool:
    """True for a decision for which it may have mattered when the executor last looked."""
    changes = (decision.transitions, decision.incidents, decision.commands, decision.ends)
    return any(changes) or decision.refusal is not None


def seen_body(fleet: Fleet) -> Row:
    """Return when the executor had last looked at each instance, as JSON."""
    return {
        record.instance_id: record.observed_at.isoformat()
        for record in fleet.stored.values()
        if record.observed_at is not None
    }


def see(fleet: Fleet, seen: Mapping[str, str]) -> None:
    """Note when the executor had last looked."""
    for name, at in seen.items():
        if name in fleet.records:
            fleet.see(name, datetime.fromisoformat(at))
