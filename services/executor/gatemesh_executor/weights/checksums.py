"""What the weights of a proven engine hashed to, kept in a folder between lives."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from gatemesh_executor.instances import Instance

Sums = Mapping[str, str]
"""Checksum of each parameter by its name."""


class Checksums:
    """Keeps one file per instance and model version; without a folder it keeps nothing."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @property
    def kept(self) -> bool:
        """True when there is a folder to keep them in."""
        return self._folder is not None

    def save(self, instance: Instance, sums: Sums) -> None:
        """Keep them as the baseline; raises OSError when the disk refuses."""
        if self._folder is None:
            return
        path = self._path(self._folder, instance)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        facts = {"instance_id": instance.instance_id, "model_version": instance.model_version}
        draft.write_text(json.dumps({**facts, "checksums": dict(sums)}), encoding="utf-8")
        draft.replace(path)

    def load(self, instance: Instance) -> Sums | None:
        """Return the baseline; None when there is none or it cannot be read."""
        if self._folder is None:
            return None
        try:
            found = json.loads(self._path(self._folder, instance).read_text(encoding="utf-8"))
            sums = found["checksums"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return sums if isinstance(sums, dict) else None

    def _path(self, folder: Path, instance: Instance) -> Path:
        key = f"{instance.pool}\0{instance.instance_id}\0{instance.model_version}"
        return folder / f"checksums-{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


def different(before: Sums, after: Sums) -> list[str]:
    """Return the parameters that differ, or that only one side has."""
    return sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )
