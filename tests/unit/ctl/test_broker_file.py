"""A definitions file and its passwords: made once, kept when made again."""

import json
from pathlib import Path

import pytest

from gatemesh_common.broker_users import SERVICES
from gatemesh_ctl.broker_file import main


def passwords(folder: Path) -> dict[str, str]:
    """Return what was written for people."""
    return dict(json.loads((folder / "passwords.json").read_text()))


def test_both_files_are_written_for_their_owner_alone(tmp_path: Path) -> None:
    """Each user has a long password of its own; the broker's file holds none of them."""
    folder = tmp_path / "broker"
    assert main([str(folder)]) == 0
    made = passwords(folder)
    text = (folder / "definitions.json").read_text()
    assert set(made) == {f"gatemesh_{service}" for service in SERVICES}
    assert len(set(made.values())) == len(made)
    assert not [password for password in made.values() if password in text or len(password) < 32]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_again_changes_no_password(tmp_path: Path) -> None:
    """After an upgrade the file is imported anew, and running services still log in."""
    main([str(tmp_path)])
    first = {path.name: path.read_text() for path in tmp_path.iterdir()}
    main([str(tmp_path)])
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == first


def test_a_site_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two stacks share a broker; passwords are never printed."""
    assert main([str(tmp_path), "--vhost", "blue", "--prefix", "blue"]) == 0
    assert main([str(tmp_path), "--vhost", "green", "--prefix", "green"]) == 0
    found = json.loads((tmp_path / "definitions.json").read_text())
    assert found["vhosts"] == [{"name": "green"}]
    made = passwords(tmp_path)
    assert {"blue_agent", "green_agent"} <= set(made)
    shown = capsys.readouterr().out
    assert "import_definitions" in shown
    assert not [password for password in made.values() if password in shown]


def test_what_cannot_be_read_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A half file may be all that is left of the passwords."""
    (tmp_path / "passwords.json").write_text("{")
    assert main([str(tmp_path)]) == 2
    assert (tmp_path / "passwords.json").read_text() == "{"
    assert "move it away" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The way out is named."""
    (tmp_path / "file").write_text("")
    assert main([str(tmp_path / "file" / "folder")]) == 2
    assert "folder of your own" in capsys.readouterr().err
