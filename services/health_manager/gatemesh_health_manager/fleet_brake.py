"""The fleet brake: where most of a pool is accused at once, the judges may be at fault."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from gatemesh_health_manager.policy import FleetBrake
from gatemesh_health_manager.record import InstanceRecord

NOBODY: frozenset[str] = frozenset()


def accused_lately(
    members: Iterable[InstanceRecord], rule: FleetBrake, reset_at: datetime | None, now: datetime
) -> frozenset[str]:
    """Return the instances accused within the window, and since a person last reset the brake."""
    # Asked with every verdict, and hardly ever is anybody accused.
    ever = [record for record in members if record.accused_at is not None]
    if not ever:
        return NOBODY
    since = now - timedelta(seconds=rule.window_s)
    if reset_at is not None:
        since = max(since, min(reset_at, now))
    return frozenset(
        record.instance_id
        for record in ever
        if record.accused_at is not None and since < record.accused_at <= now
    )


def why_braked(accused: int, total: int, rule: FleetBrake) -> str | None:
    """Return why nothing may be done in a pool of which so many are accused; None when it may."""
    many = accused >= rule.min_accused and accused > rule.max_accused_share * total
    if not rule.enabled or not many:
        return None
    return f"{accused} of {total} instances were accused within {rule.window_s:g} s"
