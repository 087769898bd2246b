"""Drill files: what makes a running engine emit garbage on purpose, for one life only."""

import json
from dataclasses import dataclass
from pathlib import Path

FAULTS = ("nan", "flat", "shift", "stuck")
"""Faults that the chaos logits processor and the simulated engine both know."""


@dataclass(frozen=True)
class Drill:
    """One fault for the process group `pgid`; it ends with that life, the file may stay."""

    fault: str
    pgid: int
    probability: float = 1.0
    after_tokens: int = 0

    def __post_init__(self) -> None:
        """Refuse a fault that no engine knows."""
        if self.fault not in FAULTS:
            raise ValueError(f"fault: {self.fault!r} is unknown; use one of {', '.join(FAULTS)}")


def start_drill(path: Path, drill: Drill) -> None:
    """Write the drill file in one step, so that an engine never reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(
        json.dumps(
            {
                "fault": drill.fault,
                "pgid": drill.pgid,
                "probability": drill.probability,
                "after_tokens": drill.after_tokens,
            }
        )
    )
    draft.replace(path)


def end_drill(path: Path) -> None:
    """Remove the drill file; harmless when there is none."""
    path.unlink(missing_ok=True)
