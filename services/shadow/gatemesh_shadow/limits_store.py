"""Keeps what was learnt from healthy instances in a file, so that a restart loses nothing."""

import json
import logging
from pathlib import Path

from gatemesh_common.errors import SettingsError
from gatemesh_shadow.limits import VersionLimits, from_json, to_json
from gatemesh_shadow.plausibility import VerifierBaseline, baseline_of

log = logging.getLogger(__name__)

FORMAT = 1


class LimitsStore:
    """Limits by pool and model version, and the verifier's baselines, in memory and on disk."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "limits.json"
        self._limits: dict[str, VersionLimits] = {}
        self._verifier: dict[str, VerifierBaseline] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"GATEMESH_SHADOW_STATE_DIR: {folder} cannot be made ({error.strerror})"
            ) from error
        self._read()

    def limits(self, pool: str, model_version: str | None) -> VersionLimits:
        """What is known of one model version; empty at first."""
        return self._limits.setdefault(name_of(pool, model_version), VersionLimits())

    def replace(self, pool: str, model_version: str | None, limits: VersionLimits) -> None:
        """Take over what was measured anew."""
        self._limits[name_of(pool, model_version)] = limits

    def verifier(self, pool: str, model_version: str | None) -> VerifierBaseline:
        """The verifier's baseline of one model version; empty at first."""
        return self._verifier.setdefault(name_of(pool, model_version), VerifierBaseline())

    def save(self) -> None:
        """Write everything, whole or not at all; a disk that takes nothing is only logged."""
        data = {
            "format": FORMAT,
            "limits": to_json(self._limits),
            "verifier": {name: one.to_json() for name, one in self._verifier.items()},
        }
        draft = self._path.with_suffix(".draft")
        try:
            draft.write_text(json.dumps(data))
            draft.replace(self._path)
        except OSError as error:
            log.error("limits_not_saved", extra={"error": error.strerror})  # noqa: TRY400

    def _read(self) -> None:
        try:
            data = json.loads(self._path.read_text())
            if data["format"] != FORMAT:
                return
            self._limits = from_json(data["limits"])
            self._verifier = {name: baseline_of(one) for name, one in data["verifier"].items()}
        except FileNotFoundError:
            return
        except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
            # Measured again: worse than knowing, better than not starting.
            extra = {"path": str(self._path), "error": type(error).__name__}
            log.warning("limits_not_read", extra=extra)


def name_of(pool: str, model_version: str | None) -> str:
    """The name under which a model version of a pool is kept."""
    return f"{pool}/{model_version or 'unknown'}"
