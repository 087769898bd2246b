"""Calibrations on disk, beside the spool: a restarted agent need not ask again."""

import hashlib
import logging
from pathlib import Path
from typing import Any

import orjson

from gatemesh_agent.calibration import Calibration

log = logging.getLogger(__name__)

MOST_KEPT = 200


class CalibrationStore:
    """Keeps calibrations by model, model version and suite version; goes on without a disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, Calibration] = _load(path)

    def find(self, *names: str) -> Calibration:
        """Return what is known, which may be nothing yet."""
        return self._kept.get(key_of(*names), Calibration())

    def keep(self, calibration: Calibration, *names: str) -> None:
        """Keep it; the oldest beyond a limit goes."""
        key = key_of(*names)
        self._kept.pop(key, None)
        self._kept[key] = calibration
        while len(self._kept) > MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._write()

    def _write(self) -> None:
        draft = self._path.with_suffix(".draft")
        listed = {key: _packed(one) for key, one in self._kept.items()}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(orjson.dumps(listed))
            draft.replace(self._path)
        except OSError as error:
            log.warning("calibration_not_kept", extra={"error": str(error)})


def key_of(*names: str) -> str:
    """Return one word for several names that may hold anything."""
    return hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _packed(one: Calibration) -> dict[str, Any]:
    return {"voters": list(one.voters), "runs": one.runs, "right": sorted(one.right)}


def _load(path: Path) -> dict[str, Calibration]:
    """Read the file; a broken or absent one is an empty one."""
    try:
        listed = orjson.loads(path.read_bytes())
        return {
            key: Calibration(tuple(one["voters"]), int(one["runs"]), frozenset(one["right"]))
            for key, one in listed.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
