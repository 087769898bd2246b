"""The drill file on disk: read cheaply while the engine runs, answered with a receipt."""

import json
import os
from collections.abc import Callable
from pathlib import Path

from gatemesh_vllm_chaos.drill import Drill, parse_drill

CHECK_INTERVAL_S = 0.05


class DrillFile:
    """Follows one drill file; costs one `stat` per interval, and nothing between."""

    def __init__(self, path: Path, pgid: int, clock: Callable[[], float]) -> None:
        self._path = path
        self._pgid = pgid
        self._clock = clock
        self._next_look = float("-inf")
        self._stamp: tuple[int, int, int] | None = None
        self._drill: Drill | None = None

    def current(self) -> Drill | None:
        """The drill that this life of the engine has to obey now, if any."""
        now = self._clock()
        if now >= self._next_look:
            self._next_look = now + CHECK_INTERVAL_S
            self._look()
        return self._drill

    def _look(self) -> None:
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        self._drill = self._read() if stamp else None

    def _read_stamp(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return (status.st_mtime_ns, status.st_size, status.st_ino)

    def _read(self) -> Drill | None:
        try:
            drill = parse_drill(self._path.read_bytes())
        except OSError:
            return None
        return drill if drill and drill.concerns(self._pgid) else None


def receipt_path(drill_file: Path) -> Path:
    """Where the engine says when a drill first spoiled a step."""
    return drill_file.with_name(drill_file.name + ".fired")


def write_receipt(drill_file: Path, drill: Drill, spoiled_at: float) -> None:
    """Leave proof that the drill has begun; a drill goes on when the disk refuses it."""
    body = {"fault": drill.fault, "pgid": drill.pgid, "spoiled_at": spoiled_at}
    target = receipt_path(drill_file)
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(body))
        draft.replace(target)
    except OSError:
        return
