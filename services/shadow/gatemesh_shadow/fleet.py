"""Which instances there are, and which of them may judge another one. Pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from gatemesh_common.messages import InstanceState, RoutedInstance, RoutingTable, ShadowSample

RESET_SLACK = timedelta(seconds=10)


@dataclass(slots=True)
class Fleet:
    """The newest routing table of every pool."""

    _tables: dict[str, RoutingTable] = field(default_factory=dict)
    heard_s: float = float("-inf")
    """When the last table came, by the caller's clock."""

    def hear(self, table: RoutingTable, now_s: float = 0.0) -> bool:
        """Take in a table; False for one older than what is known."""
        self.heard_s = now_s
        known = self._tables.get(table.pool)
        if known is not None and known.version > table.version and not is_anew(table, known):
            return False
        self._tables[table.pool] = table
        return True

    @property
    def pools(self) -> tuple[str, ...]:
        """Pools of which a table is known."""
        return tuple(self._tables)

    def healthy(self, pool: str) -> tuple[RoutedInstance, ...]:
        """Instances of a pool that nothing is held against."""
        table = self._tables.get(pool)
        instances = table.instances if table else ()
        return tuple(
            one for one in instances if one.state is InstanceState.HEALTHY and one.in_rotation
        )

    def is_healthy(self, sample: ShadowSample) -> bool:
        """True when nothing is held against the life of the instance that a sample is from."""
        return any(
            one.instance_id == sample.instance_id and sample.incarnation in (None, one.incarnation)
            for one in self.healthy(sample.pool)
        )

    def life_of(self, sample: ShadowSample) -> RoutedInstance | None:
        """The instance that a sample is from, while it is in rotation and lives the same life."""
        table = self._tables.get(sample.pool)
        instances = table.instances if table else ()
        found = (
            one
            for one in instances
            if one.instance_id == sample.instance_id
            and one.in_rotation
            and sample.incarnation in (None, one.incarnation)
        )
        return next(found, None)

    def model_version(self, sample: ShadowSample) -> str | None:
        """The model version that a sample was made with, as far as is known."""
        if sample.model_version is not None:
            return sample.model_version
        table = self._tables.get(sample.pool)
        own = (
            one.model_version
            for one in (table.instances if table else ())
            if one.instance_id == sample.instance_id
        )
        return next(own, None)

    def judges(
        self, sample: ShadowSample, besides: Collection[str] = ()
    ) -> tuple[RoutedInstance, ...]:
        """Healthy instances of the same model version; never the accused, none of `besides`."""
        version = self.model_version(sample)
        return tuple(
            one
            for one in self.healthy(sample.pool)
            if one.instance_id != sample.instance_id
            and one.instance_id not in besides
            and version in (None, one.model_version)
        )

    def versions(self, pool: str) -> dict[str, tuple[RoutedInstance, ...]]:
        """Healthy instances of a pool by model version."""
        found: dict[str, list[RoutedInstance]] = {}
        for one in self.healthy(pool):
            found.setdefault(one.model_version, []).append(one)
        return {version: tuple(instances) for version, instances in found.items()}


def is_anew(table: RoutingTable, known: RoutingTable) -> bool:
    """True for a version so much younger that the manager's database must have begun anew."""
    return table.timestamp - known.timestamp > RESET_SLACK


def least_busy(
    instances: Iterable[RoutedInstance], busy: dict[str, int], last_used: dict[str, int]
) -> RoutedInstance | None:
    """The instance with the fewest of our requests; of several, the one longest not asked."""
    return min(
        instances,
        key=lambda one: (busy.get(one.instance_id, 0), last_used.get(one.instance_id, -1)),
        default=None,
    )
