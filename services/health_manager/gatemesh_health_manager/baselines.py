"""The pools' baselines: sketches of healthy instances merged, bounded, faded. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from gatemesh_common.messages import BaselineEntry, Decoding, InstanceState, Sketch
from gatemesh_common.samples import any_script
from gatemesh_common.sketches import Histogram, entry_of, histogram_of
from gatemesh_health_manager.policy import BaselinePolicy

Kind = tuple[str, Decoding, str]
"""Figure, decoding, script."""

MOST_KINDS = 300
"""Kept of one instance: garbage in ever new scripts must not fill the database."""


@dataclass(frozen=True)
class Standing:
    """What an instance must be known by for its answers to count as normal."""

    state: InstanceState
    state_since: datetime
    incarnation: int
    troubled: bool
    """True while an incident is open or held."""


@dataclass(frozen=True)
class HeldBack:
    """Sketches of one telemetry window that wait to be merged."""

    instance_id: str
    incarnation: int
    window_start: datetime
    sketches: tuple[Sketch, ...]


def may_count(held: HeldBack, standing: Standing | None) -> bool:
    """Return True when its instance was healthy in that window and has been ever since.

    Sketches wait for some time before they are looked at: that is what makes "ever since" tell
    something, since a fault is often seen only some answers later.
    """
    return (
        standing is not None
        and standing.state is InstanceState.HEALTHY
        and not standing.troubled
        and standing.incarnation == held.incarnation
        and standing.state_since <= held.window_start
    )


def take_in(
    kept: Mapping[Kind, Histogram], sketches: Iterable[Sketch], keep_samples: float
) -> dict[Kind, Histogram]:
    """Return the histograms of an instance that changed, with its new sketches in them.

    Beyond `keep_samples` answers the old ones fade as new ones come; silence forgets nothing.
    """
    changed: dict[Kind, Histogram] = {}
    for sketch in sketches:
        kind = (sketch.metric, sketch.decoding, sketch.script)
        histogram = changed.get(kind)
        if histogram is None:
            before = kept.get(kind)
            if before is None and len({*kept, *changed}) >= MOST_KINDS:
                continue
            histogram = before.scaled(1.0) if before else Histogram(sketch.width)
        histogram.merge(histogram_of(sketch))
        changed[kind] = histogram
    return {kind: faded(histogram, keep_samples) for kind, histogram in changed.items()}


def faded(histogram: Histogram, keep_samples: float) -> Histogram:
    """Return it with no more weight than `keep_samples` answers."""
    if histogram.count <= keep_samples:
        return histogram
    return histogram.scaled(keep_samples / histogram.count)


def bounded(parts: Mapping[str, Histogram], policy: BaselinePolicy) -> Histogram:
    """Merge the histograms of several instances, each with a bounded share.

    While the others have seen little, an instance still counts for a few times the least number of
    answers, or one that takes all the traffic could never be measured.
    """
    total = sum(part.count for part in parts.values())
    merged = Histogram(next(iter(parts.values())).width)
    for part in parts.values():
        merged.merge(part, min(1.0, most_of(part.count, total, policy) / part.count))
    return merged


FIRST_ANSWERS = 4.0
"""Times `min_samples`: the least that one instance may count for."""


def most_of(count: float, total: float, policy: BaselinePolicy) -> float:
    """Return the weight that an instance of `count` answers may have."""
    others = total - count
    if policy.max_share >= 1.0 or others <= 0.0:
        return count
    allowed = others * policy.max_share / (1.0 - policy.max_share)
    return max(allowed, FIRST_ANSWERS * policy.min_samples)


def entries_of(
    instances: Mapping[str, Mapping[Kind, Histogram]], policy: BaselinePolicy
) -> tuple[BaselineEntry, ...]:
    """Return what is normal in a pool, of each kind that enough answers are known of."""
    by_kind: dict[Kind, dict[str, Histogram]] = defaultdict(dict)
    for name, histograms in instances.items():
        for kind, histogram in histograms.items():
            if histogram.count > 0:
                by_kind[kind][name] = histogram
    merged = {kind: bounded(parts, policy) for kind, parts in by_kind.items()}
    for (metric, decoding, script), histogram in list(merged.items()):
        kind = (metric, decoding, any_script(script))
        together = merged.setdefault(kind, Histogram(histogram.width))
        together.merge(histogram)
    found = [entry_of(*kind, merged[kind]) for kind in sorted(merged)]
    return tuple(entry for entry in found if entry and entry.count >= policy.min_samples)
