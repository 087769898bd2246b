"""Which instance gets a request: the least loaded of those in rotation. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from gatemesh_common.messages import InstanceState, RoutedInstance, RoutingTable
from gatemesh_common.versions import supersedes

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PoolView:
    """The instances of one pool as one version of the manager's table has them."""

    version: int = 0
    """0 for instances that come from settings: no manager has numbered their lives."""
    timestamp: datetime = BEGINNING
    instances: tuple[RoutedInstance, ...] = ()

    def in_rotation(self) -> list[RoutedInstance]:
        """Return the instances that may get new client requests."""
        return [instance for instance in self.instances if instance.in_rotation]

    def find(self, instance_id: str) -> RoutedInstance | None:
        """Return one instance as this version has it."""
        # Asked several times for each request: a generator takes thrice as long as the loop.
        for one in self.instances:
            if one.instance_id == instance_id:
                return one
        return None


def bootstrap(instances: Mapping[str, str]) -> PoolView:
    """Return the view of instances known by settings only: all in rotation."""
    return PoolView(
        instances=tuple(
            RoutedInstance(
                instance_id=instance_id,
                base_url=base_url,
                state=InstanceState.HEALTHY,
                incarnation=0,
            )
            for instance_id, base_url in instances.items()
        )
    )


def view_of(table: RoutingTable, only: Collection[str] = ()) -> PoolView:
    """Return the view of a received table; `only` names the instances of a sidecar."""
    instances = tuple(one for one in table.instances if not only or one.instance_id in only)
    return PoolView(table.version, table.timestamp, instances)


def choose(
    candidates: Iterable[RoutedInstance],
    in_flight: Mapping[str, int],
    rng: Random,
) -> RoutedInstance | None:
    """Return the least loaded candidate for its weight; between equals chance decides by weight.

    So an instance with a lower weight gets its share of a quiet pool, too: one that got nothing
    would neither be convicted nor cleared. Source of the draw: Efraimidis and Spirakis 2006.
    """

    def load(instance: RoutedInstance) -> tuple[float, float]:
        busy = in_flight.get(instance.instance_id, 0) / instance.weight
        return busy, -(rng.random() ** (1 / instance.weight))

    return min(candidates, key=load, default=None)


@dataclass(slots=True)
class Router:
    """The present view, the requests under way, and which instances lately gave no answer."""

    rng: Random
    shun_s: float = 1.0
    view: PoolView = PoolView()
    in_flight: Counter[str] = field(default_factory=Counter)
    shunned_until: dict[str, float] = field(default_factory=dict)

    def pick(self, now: float, tried: Collection[str] = ()) -> RoutedInstance | None:
        """Return the instance for a new request; None when none is left in rotation.

        One that lately refused a connection is taken only when there is no other.
        """
        able = [one for one in self.view.in_rotation() if one.instance_id not in tried]
        good = [one for one in able if self.shunned_until.get(one.instance_id, 0.0) <= now]
        return choose(good or able, self.in_flight, self.rng)

    def second(self, now: float, asked: Collection[str]) -> RoutedInstance | None:
        """Return an instance that can judge others: healthy, and not one that lately refused."""
        able = [
            one
            for one in self.view.in_rotation()
            if one.instance_id not in asked
            and one.state is InstanceState.HEALTHY
            and self.shunned_until.get(one.instance_id, 0.0) <= now
        ]
        return choose(able, self.in_flight, self.rng)

    def relief(self, now: float, tried: Collection[str]) -> RoutedInstance | None:
        """Return the instance that goes on with another one's answer: a healthy one, if there is.

        None when none is left that was not tried.
        """
        able = [one for one in self.view.in_rotation() if one.instance_id not in tried]
        ready = [one for one in able if self.shunned_until.get(one.instance_id, 0.0) <= now]
        healthy = [one for one in ready if one.state is InstanceState.HEALTHY]
        return choose(healthy or ready or able, self.in_flight, self.rng)

    def shun(self, instance_id: str, now: float) -> None:
        """Prefer others for a while."""
        self.shunned_until[instance_id] = now + self.shun_s

    def is_shunned(self, instance_id: str, now: float) -> bool:
        """Return True while others are preferred."""
        return self.shunned_until.get(instance_id, 0.0) > now

    def enter(self, instance_id: str) -> None:
        """Count a request that begins at an instance."""
        self.in_flight[instance_id] += 1

    def leave(self, instance_id: str) -> None:
        """Count a request that ended there."""
        self.in_flight[instance_id] -= 1

    def replace(self, view: PoolView) -> bool:
        """Take over a received view if it is newer; True when it was."""
        if not supersedes(view, self.view):
            return False
        self.view = view
        return True

    def is_out(self, instance_id: str) -> bool:
        """Return True when the present view has the instance out of rotation."""
        found = self.view.find(instance_id)
        return found is None or not found.in_rotation
