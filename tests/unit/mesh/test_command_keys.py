"""The stack's own pair of keys."""

from pathlib import Path

import pytest

from gatemesh_common.signing import SigningKey, TrustedKeys
from gatemesh_mesh.command_keys import prepare_keys, random_seed
from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.state import StateFolder


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    """Give an empty state folder."""
    return StateFolder(tmp_path)


def test_the_pair_is_made_once(folder: StateFolder) -> None:
    """What was sent before a restart is obeyed after it."""
    prepare_keys(folder)
    first = folder.signing_key_file.read_text()
    prepare_keys(folder)
    assert folder.signing_key_file.read_text() == first
    trusted = TrustedKeys.from_pem(folder.trusted_keys_file.read_text())
    assert trusted.distrust(b"{}", SigningKey.from_pem(first).sign(b"{}")) is None


def test_nobody_else_reads_the_files(folder: StateFolder) -> None:
    """Nor the names in their folder."""
    prepare_keys(folder)
    files = (folder.signing_key_file, folder.trusted_keys_file)
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert folder.signing_key_file.parent.stat().st_mode & 0o777 == 0o700


def test_a_key_that_was_put_there_by_hand_is_trusted(folder: StateFolder) -> None:
    """Its public part follows."""
    prepare_keys(folder)
    other = SigningKey.from_seed(bytes(32))
    folder.signing_key_file.write_text(other.private_pem())
    prepare_keys(folder)
    assert folder.trusted_keys_file.read_text() == other.public_pem()


def test_a_damaged_key_is_told(folder: StateFolder) -> None:
    """It is not replaced unasked."""
    prepare_keys(folder)
    folder.signing_key_file.write_text("words")
    with pytest.raises(MeshError, match=r"signing\.pem holds no signing key"):
        prepare_keys(folder)
    assert folder.signing_key_file.read_text() == "words"


def test_no_two_stacks_share_a_key() -> None:
    """It is random."""
    assert random_seed() != random_seed()
