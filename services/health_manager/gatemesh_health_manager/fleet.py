"""The pools that one transaction works on: applies events one by one and keeps count of changes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from gatemesh_common.messages import ActionRequest, InstanceState
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.assess import Event, assess
from gatemesh_health_manager.facts import NO_FACTS, Facts
from gatemesh_health_manager.fleet_brake import (
    accused_lately,
    newest_version,
    version_to_blame,
    way_back,
    why_no_version,
)
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import Decision, InstanceRecord, PoolFacts
from gatemesh_health_manager.roles import why_not_allowed


@dataclass(frozen=True)
class PoolRecord:
    """What is stored of a pool itself."""

    pool: str
    routing_version: int = 0
    paused: bool = False
    braked_at: datetime | None = None
    """When the fleet brake fell; none while it is not on."""
    brake_reason: str = ""
    """Why it fell last."""
    brake_reset_at: datetime | None = None
    """When a person last reset it; earlier accusations make it fall no more."""
    brake_reset: str = ""
    """Who did, and what became of the incidents it had held."""
    suspect_version: str = ""
    """The new model version that most of the accused run, while the brake is on."""


NOBODY: frozenset[str] = frozenset()
COUNTED = (
    *("pool", "state", "base_url", "ticket", "observed_at", "accused_at"),
    "weight_ceiling",
)
"""What of a record is counted in the facts of its pool."""
DEFAULT_POOL = "default"
"""Pool of an instance of which nobody says another."""
UNSEEN_FOR = timedelta(seconds=120)
"""An instance that the executor shows so much less lately than others has left its list."""


def present(records: Iterable[InstanceRecord]) -> list[InstanceRecord]:
    """Return those that the executor still shows; one that has left must not eat the budget.

    Where it is the executor that is away, all were last seen alike, and all stay.
    """
    known = list(records)
    seen = [record.observed_at for record in known if record.observed_at is not None]
    if not seen:
        return known
    since = max(seen) - UNSEEN_FOR
    return [
        record
        for record in known
        if record.serving or record.observed_at is None or record.observed_at >= since
    ]


class Fleet:
    """Records of whole pools, changed by decisions; holds no lock and does no I/O."""

    def __init__(
        self, policy: Policy, pools: Iterable[PoolRecord], records: Iterable[InstanceRecord]
    ) -> None:
        self.policy = policy
        self.pools = {pool.pool: pool for pool in pools}
        self.records = {record.instance_id: record for record in records}
        self.loaded = dict(self.pools)
        """Pools as they were at first, to tell which have changed."""
        self.stored = dict(self.records)
        """Records as they were at first."""
        self.changed_routing: set[str] = set()
        self._facts: dict[str, PoolFacts] = {}
        """What is known of pools whose records have not changed since."""
        self._facts_then: dict[str, tuple[datetime, PoolFacts, PoolFacts]] = {}
        """Moment, what was known of a pool, and that as of the moment: a batch has one moment."""

    def register(self, instance_id: str, pool: str, now: datetime) -> InstanceRecord:
        """Return the record of an instance; one never heard of starts as `starting`, life 0."""
        known = self.records.get(instance_id)
        if known is not None:
            return known
        self.pools.setdefault(pool, PoolRecord(pool))
        fresh = InstanceRecord(
            instance_id=instance_id,
            pool=pool,
            state=InstanceState.STARTING,
            state_since=now,
            penalty_at=now,
        )
        self.put(fresh)
        return fresh

    def facts_of(self, pool: str, now: datetime | None = None) -> PoolFacts:
        """Return what decisions must know of a pool; who was accused lately needs the moment."""
        facts = self._facts.get(pool)
        if facts is None:
            facts = self._facts[pool] = self._count(pool)
        if now is None or not facts.accused:
            return replace(facts, accused=NOBODY) if facts.accused else facts
        then = self._facts_then.get(pool)
        if then is not None and then[0] == now and then[1] is facts:
            return then[2]
        rule, reset_at = self.policy.for_pool(pool).fleet_brake, facts.brake_reset_at
        members = [self.records[name] for name in facts.accused]
        found = replace(facts, accused=accused_lately(members, rule, reset_at, now))
        self._facts_then[pool] = now, facts, found
        return found

    def see(self, instance_id: str, at: datetime) -> None:
        """Note when the executor last looked at an instance."""
        self.put(replace(self.records[instance_id], observed_at=at))

    def put(self, record: InstanceRecord) -> None:
        """Take in a record; what is known of its pool is counted anew where that may differ."""
        before = self.records.get(record.instance_id)
        self.records[record.instance_id] = record
        if before is None or any(
            getattr(before, name) is not getattr(record, name) for name in COUNTED
        ):
            self._facts.pop(record.pool, None)
            self._facts.pop(before.pool if before else record.pool, None)

    def take_over(self, other: "Fleet") -> None:
        """Have the pools of another fleet, and their records, as they are there."""
        self.pools.update(other.pools)
        self.records.update(other.records)
        self._facts.clear()

    def _count(self, pool: str) -> PoolFacts:
        """Count the members; `accused` are here all that ever were."""
        members = present(
            record
            for record in self.records.values()
            if record.pool == pool and record.observed and record.state is not InstanceState.RETIRED
        )
        known = self.pools[pool]
        return PoolFacts(
            total=len(members),
            serving=sum(record.has_traffic for record in members),
            paused=known.paused,
            routing_version=known.routing_version,
            probing=sum(record.serving and record.ticket is not None for record in members),
            braked=known.braked_at is not None,
            braked_at=known.braked_at,
            suspect_version=known.suspect_version,
            brake_reset_at=known.brake_reset_at,
            accused=frozenset(
                record.instance_id for record in members if record.accused_at is not None
            ),
        )

    def apply(
        self, instance_id: str, event: Event, now: datetime, facts: Facts = NO_FACTS
    ) -> Decision:
        """Decide about one event, and have the next decision see the outcome."""
        before = self.records[instance_id]
        decision = assess(
            before,
            facts,
            event,
            self.facts_of(before.pool, now),
            policy=self.policy.for_pool(before.pool),
            now=now,
        )
        if decision.record is not before:
            self.put(decision.record)
        if decision.routing_changed:
            self._bump({before.pool, decision.record.pool})
        if decision.brake is not None:
            self._brake(before.pool, decision.brake, now)
        return decision

    def _brake(self, pool: str, reason: str, now: datetime) -> None:
        """Let the fleet brake fall; a new model version that is to blame is named."""
        rule = self.policy.for_pool(pool).fleet_brake
        accused = [self.records[name] for name in sorted(self.facts_of(pool, now).accused)]
        change = version_to_blame(accused, rule, now) if rule.roll_back != "off" else None
        if change is not None:
            reason = f"{reason}; {way_back(change, pool, rule)}"
        self.pools[pool] = replace(
            self.pools[pool],
            braked_at=now,
            brake_reason=reason,
            suspect_version=change.version if change else "",
        )
        self._facts.clear()

    def answer(self, request: Asked, now: datetime) -> tuple[str, list[Decision]]:
        """Follow or refuse an operator's request; return why not, and what was decided."""
        name = request.instance_id
        known = self.records.get(name) if name else None
        # An instance is where it is known to be, whatever pool the request names.
        pool = known.pool if known else request.pool
        refusal = why_not_allowed(self.policy.roles, self.policy.operators, request, pool)
        if refusal is not None:
            return refusal, []
        if name is None:
            return self._answer_about_pool(request, now)
        if name not in self.records:
            return "no such instance has been heard of", []
        decision = self.apply(name, request, now)
        return decision.refusal or "", [decision]

    def _answer_about_pool(self, request: Asked, now: datetime) -> tuple[str, list[Decision]]:
        if request.pool not in self.pools:
            return "no instance of this pool has been heard of", []
        if request.action == "roll_back":
            return self._roll_back(request, now)
        if request.action != "reset_brake":
            self.pause(request)
            return "", []
        if not self.reset_brake(request, now):
            return "the fleet brake of this pool is not on", []
        # Who comes first gets the room in the ejection budget.
        names = sorted(record.instance_id for record in self.members(request.pool))
        return "", [self.apply(name, request, now) for name in names]

    def _roll_back(self, request: Asked, now: datetime) -> tuple[str, list[Decision]]:
        """Roll back every instance that runs the version to leave, each as there is room."""
        members = [one for one in self.members(request.pool) if one.observed]
        version = request.model_version or newest_version(members)
        names = sorted(one.instance_id for one in members if one.model_version == version)
        if not names:
            return why_no_version(version, members), []
        decisions = [self.apply(name, request, now) for name in names]
        refusals = [f"{one.record.instance_id}: {one.refusal}" for one in decisions if one.refusal]
        return "; ".join(refusals) if len(refusals) == len(names) else "", decisions

    def pause(self, request: ActionRequest) -> None:
        """Stop or resume acting in a pool; judging goes on."""
        known = self.pools.setdefault(request.pool, PoolRecord(request.pool))
        self.pools[request.pool] = replace(known, paused=request.action == "pause")
        self._facts.clear()

    def reset_brake(self, request: Asked, now: datetime) -> bool:
        """Take the fleet brake off a pool; False when it is not on."""
        known = self.pools[request.pool]
        if known.braked_at is None:
            return False
        said = f"{request.backlog} by {request.asker}"
        self.pools[request.pool] = replace(
            known, braked_at=None, brake_reset_at=now, brake_reset=said, suspect_version=""
        )
        self._facts.clear()
        return True

    def members(self, pool: str) -> list[InstanceRecord]:
        """Return the records of a pool."""
        return [record for record in self.records.values() if record.pool == pool]

    def _bump(self, pools: set[str]) -> None:
        for pool in pools:
            known = self.pools.setdefault(pool, PoolRecord(pool))
            self.pools[pool] = replace(known, routing_version=known.routing_version + 1)
        self._facts.clear()
        self.changed_routing |= pools

    @property
    def versions(self) -> Mapping[str, int]:
        """Return the routing version of every pool."""
        return {pool.pool: pool.routing_version for pool in self.pools.values()}
