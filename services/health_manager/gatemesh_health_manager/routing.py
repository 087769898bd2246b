"""What agents are told of a pool: one row per observed instance."""

from collections.abc import Iterable
from datetime import datetime

from gatemesh_common.messages import RoutedInstance, RoutingTable
from gatemesh_health_manager.record import InstanceRecord


def routed(record: InstanceRecord) -> RoutedInstance | None:
    """Return the row of an instance; none while nobody knows where it listens."""
    if record.base_url is None:
        return None
    return RoutedInstance(
        instance_id=record.instance_id,
        base_url=record.base_url,
        state=record.state,
        incarnation=record.incarnation,
        weight=record.weight,
        model_version=record.model_version,
        probe=record.ticket,
    )


ROUTED = ("base_url", "state", "incarnation", "weight", "model_version", "ticket")
"""What of a record its row is made of."""


def is_routing_changed(before: InstanceRecord, after: InstanceRecord) -> bool:
    """True when agents must be told: the pool or the row of an instance is another one."""
    if before is after:
        return False
    unknown = before.base_url is None and after.base_url is None
    row_changed = any(getattr(before, name) != getattr(after, name) for name in ROUTED)
    return before.pool != after.pool or (row_changed and not unknown)


def routing_table(
    pool: str, version: int, records: Iterable[InstanceRecord], now: datetime
) -> RoutingTable:
    """Return the whole table of a pool, instances in order of their names."""
    rows = sorted(
        (row for record in records if (row := routed(record))), key=lambda row: row.instance_id
    )
    return RoutingTable(timestamp=now, pool=pool, version=version, instances=tuple(rows))
