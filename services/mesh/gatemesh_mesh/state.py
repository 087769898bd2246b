"""The state folder: everything that a local stack leaves on disk, and who holds it."""

import fcntl
import hashlib
import json
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gatemesh_common.broker_users import SERVICES
from gatemesh_mesh.errors import AlreadyRunningError, MeshError

STATE_VARIABLE = "GATEMESH_STATE"
SOCKET_PATH_LIMIT = 90
"""Unix socket paths end at 107 bytes, and supervisor first binds a longer temporary name."""

SECRET_NAMES = ("mark", "supervisor", "broker", "database", "fingerprint", "console")
BROKER_SECRETS = {service: f"broker_{service}" for service in SERVICES}
"""By service: the name of its password at the broker."""


class StateFolder:
    """Paths inside one state folder, its secrets, and its lock."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    @property
    def logs(self) -> Path:
        """One log file per program."""
        return self.root / "logs"

    @property
    def rabbit(self) -> Path:
        """The broker node's own folder."""
        return self.root / "rabbit"

    @property
    def supervisor(self) -> Path:
        """Configuration and log of supervisord."""
        return self.root / "supervisor"

    @property
    def spool(self) -> Path:
        """What services keep across restarts."""
        return self.root / "spool"

    @property
    def signing_key_file(self) -> Path:
        """The private key by which the manager signs commands."""
        return self.root / "keys" / "signing.pem"

    @property
    def trusted_keys_file(self) -> Path:
        """The public keys whose commands the executor obeys."""
        return self.root / "keys" / "trusted.pem"

    @property
    def run_file(self) -> Path:
        """What runs: ports, addresses and the supervisord process."""
        return self.root / "run.json"

    @property
    def supervisor_socket(self) -> Path:
        """Where supervisord listens; elsewhere when this folder's path is too long for a socket."""
        inside = self.supervisor / "supervisor.sock"
        if len(os.fsencode(inside)) <= SOCKET_PATH_LIMIT:
            return inside
        return outside_folder(self.root, "run", Path(tempfile.gettempdir())) / "supervisor.sock"

    def create(self) -> None:
        """Make the folders.

        Raises:
            MeshError: they cannot be made, or the disk is full.
        """
        with explained(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            # The database server runs as another user and must be able to pass.
            self.root.chmod(stat.S_IMODE(self.root.stat().st_mode) | 0o711)
            for folder in (self.logs, self.rabbit, self.supervisor, self.spool):
                folder.mkdir(mode=0o700, exist_ok=True)

    def secrets(self) -> dict[str, str]:
        """Return this folder's random passwords, made at first use; nobody else can read them."""
        path = self.root / "secrets.json"
        known = read_json(path)
        wanted = (*SECRET_NAMES, *BROKER_SECRETS.values())
        missing = [name for name in wanted if name not in known]
        if missing:
            known |= {name: secrets.token_hex(16) for name in missing}
            write_json(path, known)
        return {name: str(value) for name, value in known.items()}

    def read_run(self) -> dict[str, Any]:
        """Return what the last start recorded; empty when nothing was started."""
        return read_json(self.run_file)

    def write_run(self, facts: Mapping[str, Any]) -> None:
        """Record what runs."""
        write_json(self.run_file, facts)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold this folder alone; the lock goes with the process, however that ends.

        Raises:
            AlreadyRunningError: another process holds it.
        """
        with self._lock_file() as descriptor:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AlreadyRunningError(self.holder_pid(), str(self.root)) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            yield

    def is_held(self) -> bool:
        """Tell whether a living process holds this folder."""
        if not (self.root / "lock").exists():
            return False
        with self._lock_file() as descriptor:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def holder_pid(self) -> int | None:
        """Return the number that the latest holder wrote."""
        try:
            return int((self.root / "lock").read_text())
        except (OSError, ValueError):
            return None

    @contextmanager
    def _lock_file(self) -> Iterator[int]:
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def state_folder(environment: Mapping[str, str], repository: Path) -> StateFolder:
    """Return the folder that GATEMESH_STATE names; `.gatemesh` in the repository without it."""
    named = environment.get(STATE_VARIABLE)
    return StateFolder(Path(named) if named else repository / ".gatemesh")


def demo_folder(folder: StateFolder) -> StateFolder:
    """Return the state folder of the demo that belongs to another one."""
    return StateFolder(folder.root / "demo")


def outside_folder(root: Path, purpose: str, parent: Path) -> Path:
    """Return the path of a folder elsewhere that belongs to one state folder."""
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
    return parent / f"gatemesh-{purpose}-{digest}"


def make_private(folder: Path, mode: int = 0o700) -> None:
    """Make a folder that is ours, also in a place where everyone may write.

    Raises:
        MeshError: somebody else has put it there.
    """
    folder.mkdir(mode=mode, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise MeshError(
            f"{folder} belongs to another user",
            f"remove it, or set {STATE_VARIABLE} to another folder",
        )
    folder.chmod(mode)


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file; empty when there is no such file or it was cut off."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_json(path: Path, facts: Mapping[str, Any]) -> None:
    """Replace a file at once; only this user can read it."""
    write_private(path, json.dumps(facts, indent=1))


def write_private(path: Path, text: str) -> None:
    """Replace a file at once, with mode 0600 from the beginning."""
    with explained(path):
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(name).replace(path)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn a failed write into what is wrong and what to do."""
    try:
        yield
    except OSError as error:
        cure = "free some space" if error.errno == 28 else "check its rights"  # noqa: PLR2004
        raise MeshError(
            f"cannot write {path}: {error.strerror}",
            f"{cure}, or set {STATE_VARIABLE} to a folder elsewhere",
        ) from error
