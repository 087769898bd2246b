"""The state folder keeps secrets to its owner and lets one run in at a time."""

import os
import stat
from pathlib import Path

import pytest

from gatemesh_mesh.errors import AlreadyRunningError, MeshError
from gatemesh_mesh.state import (
    BROKER_SECRETS,
    SECRET_NAMES,
    StateFolder,
    explained,
    make_private,
    read_json,
    state_folder,
    write_private,
)


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    """Return a folder that exists."""
    folder = StateFolder(tmp_path / "state")
    folder.create()
    return folder


def mode(path: Path) -> int:
    """Return the permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_made_once_and_are_private(folder: StateFolder) -> None:
    """A second start uses the passwords of the first."""
    secrets = folder.secrets()
    assert set(secrets) == {*SECRET_NAMES, *BROKER_SECRETS.values()}
    assert len(set(secrets.values())) == len(secrets)
    assert folder.secrets() == secrets
    assert mode(folder.root / "secrets.json") == 0o600


def test_the_database_user_can_pass_but_not_look(folder: StateFolder) -> None:
    """Only the parts that need it are open to others."""
    assert mode(folder.root) & 0o001
    assert mode(folder.supervisor) == 0o700
    assert mode(folder.rabbit) == 0o700


def test_only_one_run_holds_the_folder(folder: StateFolder) -> None:
    """Two stacks in one folder would destroy each other's data."""
    assert not folder.is_held()
    with folder.hold():
        assert folder.is_held()
        with pytest.raises(AlreadyRunningError, match=str(os.getpid())), folder.hold():
            pass
    assert not folder.is_held()
    with folder.hold():
        assert folder.holder_pid() == os.getpid()


def test_a_folder_never_used_is_not_held(tmp_path: Path) -> None:
    """`down` on a fresh clone finds nothing."""
    folder = StateFolder(tmp_path)
    assert not folder.is_held()
    assert folder.holder_pid() is None
    assert folder.read_run() == {}


def test_what_runs_is_remembered(folder: StateFolder) -> None:
    """`status` reads what `up` wrote."""
    folder.write_run({"ports": {"agent": 1}})
    assert folder.read_run() == {"ports": {"agent": 1}}


def test_a_socket_path_is_never_too_long(tmp_path: Path) -> None:
    """A deep folder works as well."""
    deep = StateFolder(tmp_path.joinpath(*["a" * 30] * 4))
    assert len(os.fsencode(deep.supervisor_socket)) <= 90
    near = StateFolder(Path("/s"))
    assert near.supervisor_socket == Path("/s/supervisor/supervisor.sock")


def test_the_folder_follows_the_setting(tmp_path: Path) -> None:
    """GATEMESH_STATE wins over the repository."""
    assert state_folder({}, tmp_path).root == tmp_path / ".gatemesh"
    assert state_folder({"GATEMESH_STATE": "/elsewhere"}, tmp_path).root == Path("/elsewhere")


def test_a_cut_off_file_counts_as_none(tmp_path: Path) -> None:
    """A crash while writing costs a record, not the next start."""
    path = tmp_path / "x.json"
    assert read_json(path) == {}
    path.write_text('{"a": ')
    assert read_json(path) == {}
    path.write_text("[1]")
    assert read_json(path) == {}


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """No reader sees half a file, and no draft is left."""
    for text in ("one", "two"):
        write_private(tmp_path / "x", text)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "two"


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    """A person learns that space is missing, not a number."""
    with pytest.raises(MeshError, match="free some space"), explained(tmp_path):
        raise OSError(28, "No space left on device")
    with pytest.raises(MeshError, match="check its rights"), explained(tmp_path):
        raise OSError(13, "Permission denied")


def test_a_link_put_in_our_place_is_refused(tmp_path: Path) -> None:
    """Nobody lures us into a folder of theirs."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "ours").symlink_to(tmp_path / "theirs")
    with pytest.raises(MeshError, match="belongs to another user"):
        make_private(tmp_path / "ours")
