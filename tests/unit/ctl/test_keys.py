"""A pair of keys: two files, one of them ours alone, and none ever lost."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gatemesh_common.signing import SigningKey, TrustedKeys
from gatemesh_ctl.application import application
from gatemesh_ctl.errors import CtlError
from gatemesh_ctl.keys import PRIVATE_NAME, PUBLIC_NAME, make_pair

BODY = b"{}"


def test_the_two_files_belong_together(tmp_path: Path) -> None:
    """What the one signs the other proves."""
    key = make_pair(tmp_path / "new" / "keys")
    private = SigningKey.from_pem((tmp_path / "new" / "keys" / PRIVATE_NAME).read_text())
    public = TrustedKeys.from_pem((tmp_path / "new" / "keys" / PUBLIC_NAME).read_text())
    assert public.distrust(BODY, private.sign(BODY)) is None
    assert public.key_ids == (key.key_id,)


def test_only_its_owner_reads_the_private_key(tmp_path: Path) -> None:
    """From the moment it is there."""
    make_pair(tmp_path)
    assert (tmp_path / PRIVATE_NAME).stat().st_mode & 0o777 == 0o600


def test_each_pair_is_another_one(tmp_path: Path) -> None:
    """Nobody guesses it."""
    assert make_pair(tmp_path / "a").key_id != make_pair(tmp_path / "b").key_id


@pytest.mark.parametrize("name", [PRIVATE_NAME, PUBLIC_NAME])
def test_a_key_that_is_there_stays(tmp_path: Path, name: str) -> None:
    """Managers may be signing with it; neither file of the new pair is written."""
    (tmp_path / name).write_text("old")
    with pytest.raises(CtlError, match=f"{name} is there already"):
        make_pair(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "old"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """With what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CtlError, match="cannot be written"):
        make_pair(tmp_path / "file" / "keys")


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["plain", "json"])
def test_the_command_shows_no_private_key(tmp_path: Path, form: tuple[str, ...]) -> None:
    """Terminals are logged and shared; it tells the id and where the files are."""
    result = CliRunner().invoke(application, ["keys", "new", str(tmp_path / "k"), *form])
    assert result.exit_code == 0
    pem = (tmp_path / "k" / PRIVATE_NAME).read_text()
    assert pem.splitlines()[1] not in result.output
    assert SigningKey.from_pem(pem).key_id in result.output
    assert PRIVATE_NAME in result.output
