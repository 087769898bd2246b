"""The folder that an engine loads, and its siblings while it is replaced.

The sibling's name holds the command's id, so that a redelivered command finds its own work:
`.NAME.part-ID` is being pulled, `.NAME.fresh-ID` is pulled, `.NAME.old-ID` was there before.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gatemesh_common.errors import GatemeshError
from gatemesh_executor.weights.check import MARK_FILE

ID_LENGTH = 12


class DiskFullError(GatemeshError):
    """The disk has no room for a second copy of the weights."""


class FolderFailedError(GatemeshError):
    """The folder's disk refused: rights, room, or a name in the way."""


@contextmanager
def told_as_failure() -> Iterator[None]:
    """Turn what the disk says into a failure that is reported."""
    try:
        yield
    except OSError as error:
        raise FolderFailedError(f"{error.strerror}: {error.filename}"[:300]) from error


def short_id(command_id: str) -> str:
    """Return what names of folders hold of a command's id."""
    return "".join(sign for sign in command_id if sign.isalnum())[-ID_LENGTH:]


def mark_of(folder: Path) -> str | None:
    """Return the id of the command that pulled a folder; None where none did."""
    try:
        return (folder / MARK_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


class WeightsFolder:
    """The folder of one instance, as one command finds and leaves it."""

    def __init__(self, folder: Path, command_id: str) -> None:
        self.folder = folder
        self._command_id = command_id
        self._id = short_id(command_id)

    @property
    def part(self) -> Path:
        """Where the pull command writes."""
        return self._sibling("part")

    @property
    def fresh(self) -> Path:
        """What was pulled to the end."""
        return self._sibling("fresh")

    @property
    def old(self) -> Path:
        """What was there before; kept until the new life is ready."""
        return self._sibling("old")

    @property
    def log(self) -> Path:
        """What the pull command said."""
        return self.folder.with_name(f".{self.folder.name}.pull.log")

    def is_swapped(self) -> bool:
        """Return True when the folder is the one that this command pulled."""
        return mark_of(self.folder) == self._command_id

    def begin(self) -> Path:
        """Return an empty folder to pull into; what other commands left is removed."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        for left in self._leftovers():
            remove(left)
        self.part.mkdir()
        return self.part

    def need_room(self, least_free_bytes: int) -> None:
        """Check that a second copy fits.

        Raises:
            DiskFullError: it does not; says how much is missing.
        """
        needed = max(least_free_bytes, size_of(self.folder))
        free = shutil.disk_usage(nearest_folder(self.folder.parent)).free
        if free < needed:
            raise DiskFullError(
                f"{free / 1e9:.1f} GB free beside {self.folder.name}, {needed / 1e9:.1f} GB needed"
            )

    def finish_pull(self) -> None:
        """Call the pulled files complete."""
        self.part.rename(self.fresh)

    def discard(self) -> None:
        """Remove what was pulled: it is not what it should be."""
        remove(self.fresh)

    def swap(self) -> None:
        """Put the fresh files in the folder's place; the old ones move aside.

        Killed in between, the next call goes on. A link is turned in one step; a folder takes two
        renames, during which no life of this command runs.
        """
        if self.is_swapped():
            return
        (self.fresh / MARK_FILE).write_text(self._command_id, encoding="utf-8")
        # What was verified may still be in memory only; a power cut must not leave the name alone.
        flush(self.fresh)
        if self.folder.is_symlink():
            self._turn_link()
            return
        if self.folder.exists():
            self.folder.rename(self.old)
        self.fresh.rename(self.folder)

    def clear(self) -> None:
        """Remove what was there before and what else is left; only our own siblings."""
        for left in (*self._leftovers(), *self._former_targets()):
            remove(left)

    def _turn_link(self) -> None:
        target = self.folder.with_name(f"{self.folder.name}-{self._id}")
        # A link must not point at a name that is cleaned up as a leftover.
        remove(target)
        self.fresh.rename(target)
        turned = self._sibling("link")
        remove(turned)
        turned.symlink_to(target.name)
        turned.replace(self.folder)

    def _sibling(self, word: str) -> Path:
        return self.folder.with_name(f".{self.folder.name}.{word}-{self._id}")

    def _leftovers(self) -> list[Path]:
        heads = tuple(f".{self.folder.name}.{word}-" for word in ("part", "fresh", "old", "link"))
        return self._siblings(heads)

    def _former_targets(self) -> list[Path]:
        """Return what the link pointed at before, where a replacement of this folder had made it.

        Another model may be kept beside it under a name that begins alike, and be replaced, too.
        """
        if not self.folder.is_symlink():
            return []
        present = self.folder.resolve()
        return [
            path
            for path in self._siblings((f"{self.folder.name}-",))
            if path.resolve() != present and not path.is_symlink() and self._made(path)
        ]

    def _made(self, path: Path) -> bool:
        mark = mark_of(path)
        return mark is not None and path.name == f"{self.folder.name}-{short_id(mark)}"

    def _siblings(self, heads: tuple[str, ...]) -> list[Path]:
        return [path for path in self.folder.parent.iterdir() if path.name.startswith(heads)]


def remove(path: Path) -> None:
    """Remove a file, a link or a whole folder; harmless when it is gone."""
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)


def flush(folder: Path) -> int:
    """Have the disk hold every file of a folder; return how many."""
    paths = [Path(parent) / name for parent, _, names in os.walk(folder) for name in names]
    files = [path for path in paths if path.is_file()]
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())
    return len(files)


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder, 0 when there is none."""
    paths = (Path(parent) / name for parent, _, names in os.walk(folder) for name in names)
    return sum(path.stat().st_size for path in paths if path.is_file())


def nearest_folder(path: Path) -> Path:
    """Return the path, or its nearest parent that exists."""
    return next((one for one in (path, *path.parents) if one.is_dir()), Path("/"))
