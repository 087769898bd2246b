"""Keys are made, listed and taken away by a command."""

from pathlib import Path

import pytest

from gatemesh_agent.keys import Limits, digest_of, read_keys
from gatemesh_agent.keys_cli import main


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a file of keys will be."""
    return tmp_path / "keys.toml"


def test_a_key_is_shown_once_and_kept_as_a_hash(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever reads the file cannot use it."""
    assert main([str(path), "new", "team-a", "--tokens-per-min", "9000"]) == 0
    secret = capsys.readouterr().out.strip()
    assert secret.startswith("gm-")
    assert len(secret) > 40
    assert secret not in path.read_text()
    assert path.stat().st_mode & 0o007 == 0
    [(digest, key)] = read_keys(path.read_text(), Limits(5, 5)).items()
    assert (digest, key.name) == (digest_of(secret), "team-a")
    assert key.limits == Limits(5, 9000)


def test_others_stay_as_they_are(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also the rights that somebody gave to the file."""
    main([str(path), "new", "a", "--requests-per-min", "3"])
    path.chmod(0o644)
    main([str(path), "new", "b"])
    capsys.readouterr()
    assert path.stat().st_mode & 0o777 == 0o644
    assert main([str(path), "list"]) == 0
    assert capsys.readouterr().out == "a  requests_per_min=3\nb\n"
    assert main([str(path), "drop", "a"]) == 0
    assert [key.name for key in read_keys(path.read_text(), Limits()).values()] == ["b"]


@pytest.mark.parametrize(
    "arguments",
    [["new", "a"], ["new", "b c"], ["new", "b", "--requests-per-min", "-1"], ["drop", "c"]],
    ids=["same-name", "odd-name", "negative", "unknown"],
)
def test_a_wrong_wish_changes_nothing(
    path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is what agents read."""
    main([str(path), "new", "a"])
    before = path.read_text()
    assert main([str(path), *arguments]) == 2
    assert path.read_text() == before
    assert "error: " in capsys.readouterr().err


def test_a_file_at_fault_is_left_alone(path: Path) -> None:
    """It may be half of something."""
    path.write_text("[[keys]")
    assert main([str(path), "new", "a"]) == 2
    assert path.read_text() == "[[keys]"
