"""The database server runs as somebody harmless, where that somebody can reach it."""

from pathlib import Path

import pytest

from gatemesh_mesh import postgres
from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.postgres import PostgresServer, is_passable, plain_url


@pytest.fixture
def server(tmp_path: Path) -> PostgresServer:
    """Return a server that never runs."""
    return PostgresServer(
        bin=tmp_path / "bin",
        folder=tmp_path,
        log_file=tmp_path / "log.txt",
        port=21_000,
        password="secret",
        run_as="nobody",
    )


def test_addresses(server: PostgresServer) -> None:
    """Services get the driver's name, people do not."""
    url = "postgresql+psycopg://mesh:secret@127.0.0.1:21000/gatemesh"
    assert server.url() == url
    assert plain_url(url) == "postgresql://mesh:secret@127.0.0.1:21000/gatemesh"
    assert plain_url("postgresql://x/y") == "postgresql://x/y"


def test_it_stops_without_waiting_for_clients(server: PostgresServer) -> None:
    """SIGTERM would wait for every client for ever."""
    program = postgres.program(server)
    assert program.stop_signal == "INT"
    assert program.user == "nobody"
    assert "listen_addresses=127.0.0.1" in program.argv
    assert "unix_socket_directories=" in program.argv


def test_a_closed_parent_folder_is_seen(tmp_path: Path) -> None:
    """Another user cannot pass through a private folder."""
    inner = tmp_path / "closed" / "inner"
    inner.mkdir(parents=True)
    assert is_passable(Path("/"))
    (tmp_path / "closed").chmod(0o700)
    assert not is_passable(inner)


def test_binaries_are_copied_whole(tmp_path: Path) -> None:
    """A copy that was cut off is made again; a whole one is left alone."""
    package = tmp_path / "site" / "embedded"
    (package / "pginstall" / "bin").mkdir(parents=True)
    (package / "pginstall" / "bin" / "postgres").write_text("x")
    (tmp_path / "site" / "embedded.libs").mkdir()
    away = tmp_path / "away"
    away.mkdir()
    copied = postgres.copy_binaries(package / "pginstall" / "bin", away)
    assert (copied / "postgres").read_text() == "x"
    (package / "pginstall" / "bin" / "postgres").write_text("y")
    assert (
        postgres.copy_binaries(package / "pginstall" / "bin", away) / "postgres"
    ).read_text() == "x"


def test_an_existing_data_folder_is_kept(server: PostgresServer) -> None:
    """A second start finds the history of the first."""
    server.data.mkdir()
    (server.data / "PG_VERSION").write_text("18")
    postgres.initialise(server)
    assert (server.data / "PG_VERSION").read_text() == "18"


def test_a_failed_initdb_is_explained(server: PostgresServer, tmp_path: Path) -> None:
    """A person reads the server's own words and the way out."""
    server.bin.mkdir()
    initdb = server.bin / "initdb"
    initdb.write_text("#!/bin/sh\necho 'No space left on device' >&2\nexit 1\n")
    initdb.chmod(0o755)
    plain = PostgresServer(server.bin, tmp_path, server.log_file, 1, "secret", run_as=None)
    with pytest.raises(MeshError, match="free some space"):
        postgres.initialise(plain)
    assert not (tmp_path / "password").exists()


@pytest.mark.parametrize("owner", ["1", "999999999", "nonsense"])
def test_the_lock_of_a_killed_server_does_not_stay(server: PostgresServer, owner: str) -> None:
    """A start after kill -9 succeeds, also where the number now belongs to another process."""
    server.data.mkdir()
    lock = server.data / "postmaster.pid"
    postgres.remove_stale_lock(server)
    lock.write_text(f"{owner}\n{server.data}\n")
    postgres.remove_stale_lock(server)
    assert lock.exists() == (owner == "nonsense")


def test_the_bundled_binaries_are_found() -> None:
    """The package that the extra brings holds a server."""
    assert (postgres.bundled_binaries() / "postgres").exists()
