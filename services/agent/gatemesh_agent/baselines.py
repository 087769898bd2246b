"""The baselines that an agent knows: the newest of each model version, also on disk."""

import logging
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from gatemesh_agent.gates.pool_baseline import NO_BASELINE, PoolBaseline
from gatemesh_common.messages import Baseline
from gatemesh_common.versions import supersedes

log = logging.getLogger(__name__)

MOST_VERSIONS = 8
"""Model versions kept; a rollout has two."""
UNKNOWN = "unknown"


class StoredBaselines(BaseModel):
    """The file's content."""

    model_config = ConfigDict(extra="ignore")

    baselines: tuple[Baseline, ...] = ()


class Baselines:
    """Knows what is normal by model version; begins with what is on disk."""

    def __init__(self, pool: str, store: Path | None = None) -> None:
        self._pool = pool
        self._store = store
        self._known: dict[str, Baseline] = {}
        self._baselines: dict[str, PoolBaseline] = {}
        for baseline in load_baselines(store) if store else ():
            self._keep(baseline)

    def take(self, baseline: Baseline) -> bool:
        """Measure by this baseline from now on, unless the present one is as new."""
        if not self._keep(baseline):
            return False
        if self._store is not None:
            save_baselines(self._store, tuple(self._known.values()))
        extra = {
            "model_version": baseline.model_version,
            "version": baseline.version,
            "entries": len(baseline.entries),
        }
        log.debug("baseline_applied", extra=extra)
        return True

    def _keep(self, baseline: Baseline) -> bool:
        before = self._known.get(baseline.model_version)
        if baseline.pool != self._pool or (before and not supersedes(baseline, before)):
            return False
        # The newest stand last, so that the first to go is the one not heard of for longest.
        self._known.pop(baseline.model_version, None)
        self._known[baseline.model_version] = baseline
        self._baselines[baseline.model_version] = PoolBaseline.of(baseline.entries)
        if len(self._known) > MOST_VERSIONS:
            oldest = next(iter(self._known))
            del self._known[oldest], self._baselines[oldest]
        return True

    def baseline(self, model_version: str | None) -> PoolBaseline:
        """Return what is normal for a model version; an empty baseline while nothing is known."""
        return self._baselines.get(model_version or UNKNOWN, NO_BASELINE)

    def shadow_share(self, model_version: str | None) -> float:
        """Return the share of answers that the pool's policy sends to the shadow at least."""
        known = self._known.get(model_version or UNKNOWN)
        return known.shadow_share if known else 0.0


def save_baselines(path: Path, baselines: tuple[Baseline, ...]) -> None:
    """Replace the stored baselines in one step; a full disk is logged, judging goes on."""
    beside = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        written = StoredBaselines(baselines=baselines).model_dump_json()
        beside.write_text(written, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        log.error("baselines_not_stored", extra={"error": error.strerror})  # noqa: TRY400


def load_baselines(path: Path) -> tuple[Baseline, ...]:
    """Return the stored baselines; none when they cannot be read."""
    try:
        return StoredBaselines.model_validate_json(path.read_bytes()).baselines
    except FileNotFoundError:
        return ()
    except (OSError, ValidationError) as error:
        log.warning("baselines_unreadable", extra={"error": type(error).__name__})
        return ()
