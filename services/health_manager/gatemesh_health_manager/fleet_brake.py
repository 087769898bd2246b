"""The fleet brake: where most of a pool is accused at once, the judges may be at fault."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from gatemesh_health_manager.policy import FleetBrake
from gatemesh_health_manager.record import InstanceRecord


def accused_lately(
    members: Iterable[InstanceRecord], rule: FleetBrake, reset_at: datetime | None, now: datetime
) -> frozenset[str]:
    """Return the instances accused within the window, and since a person last reset the brake."""
    since = now - timedelta(seconds=rule.window_s)
    if reset_at is not None:
        since = max(since, min(reset_at, now))
    return frozenset(
        record.instance_id
        for record in members
        if record.accused_at is not None and since < record.accused_at <= now
    )


def why_braked(accused: int, total: int, rule: FleetBrake) -> str | None:
    """Return why nothing may be done in a pool of which so many are accused; None when it may."""
    many = accused >= rule.min_accused and accused > rule.max_accused_share * total
    if not rule.enabled or not many:
        return None
    return f"{accused} of {total} instances were accused within {rule.window_s:g} s"


@dataclass(frozen=True)
class VersionChange:
    """A model version that may be to blame, and the one before it."""

    version: str
    former: str


def version_to_blame(
    accused: Iterable[InstanceRecord], rule: FleetBrake, now: datetime
) -> VersionChange | None:
    """Return the new model version that most of the accused run; None where none is new."""
    since = now - timedelta(seconds=rule.roll_back_within_s)
    runs = [
        VersionChange(record.model_version, record.former_version)
        if record.former_version and record.version_since and record.version_since > since
        else None
        for record in accused
    ]
    counted = Counter(change for change in runs if change is not None)
    # The name decides between equals, so that a replay decides alike.
    most = max(counted, key=lambda one: (counted[one], one.version, one.former), default=None)
    return most if most is not None and 2 * counted[most] > len(runs) else None


def way_back(change: VersionChange, pool: str, rule: FleetBrake) -> str:
    """Word what is to be done about a new version: it is rolled back, or that is offered."""
    said = f"most of them run {change.version!r}, which came after {change.former!r} lately"
    if rule.roll_back == "act":
        return f"{said}; it is being rolled back"
    asks = f"gatemesh-ctl request roll_back --pool {pool}"
    return f"{said}; to roll it back: {asks} --model-version {change.version}"


def newest_version(members: Iterable[InstanceRecord]) -> str | None:
    """Return the model version that came last; None where no change was seen."""
    changed = [
        (one.version_since, one.model_version) for one in members if one.version_since is not None
    ]
    return max(changed)[1] if changed else None


def why_no_version(version: str | None, members: Iterable[InstanceRecord]) -> str:
    """Say why there is nothing to roll back, and the way out."""
    known = ", ".join(sorted({one.model_version for one in members})) or "none"
    if version is None:
        return f"no change of the model version was seen here; name the one to leave: {known}"
    return f"no instance here runs model version {version!r}; versions: {known}"
