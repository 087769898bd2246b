"""Where core dumps lie: names, room, what the kernel calls them, and how many are kept."""

import re
import shutil
from datetime import datetime
from pathlib import Path

from gatemesh_executor.weights.folders import nearest_folder, remove

PLAIN = re.compile(r"[^A-Za-z0-9._-]+")
WORD = re.compile(r"%(.)")
ID_LENGTH = 12


def plain(name: str) -> str:
    """Return a name that is one part of a path, and no hidden one."""
    return PLAIN.sub("_", name).lstrip(".") or "_"


def dump_folder(folder: Path, instance_id: str, command_id: str, asked_at: datetime) -> Path:
    """Return where the dump of one command goes; the same command has the same place."""
    at = f"{asked_at:%Y%m%dT%H%M%SZ}"
    return folder / f"{plain(instance_id)}_{at}_{plain(command_id)[-ID_LENGTH:]}"


def part_of(place: Path) -> Path:
    """Return where a dump is while it is being written."""
    return place.with_name(f".{place.name}.part")


def forget_old(folder: Path, instance_id: str, keep: int) -> None:
    """Remove all but the newest dumps of an instance, and what was never finished."""
    whole = rf"{re.escape(plain(instance_id))}_\d{{8}}T\d{{6}}Z_[A-Za-z0-9._-]+"
    names = sorted(path.name for path in folder.iterdir())
    old = [name for name in names if re.fullmatch(whole, name)][:-keep]
    begun = [name for name in names if re.fullmatch(rf"\.{whole}\.part", name)]
    for name in (*old, *begun):
        remove(folder / name)


def missing_bytes(folder: Path, needed_bytes: int) -> int:
    """Return how much room is missing for so much; 0 when it fits."""
    free = shutil.disk_usage(nearest_folder(folder)).free
    return max(needed_bytes - free, 0)


def kernel_name(pattern: str, pid: int, *, adds_pid: bool) -> str:
    """Return the pattern of the file that the kernel writes for a process.

    Words of its `core_pattern` other than the pid are not known here and stand for anything.
    """
    known = {"p": str(pid), "P": str(pid), "i": "*", "I": "*", "%": "%"}
    name = WORD.sub(lambda found: known.get(found[1], "*"), pattern)
    named = re.search(r"%[pP]", pattern) is not None
    return f"{name}.{pid}" if adds_pid and not named else name
