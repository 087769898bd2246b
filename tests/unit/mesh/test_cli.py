"""Every command answers, and failures are told without a traceback."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gatemesh_mesh import cli


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the command line to a state folder that was never used."""
    monkeypatch.setenv("GATEMESH_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def test_status_of_nothing(empty: Path) -> None:
    """Scripts can tell by the exit code."""
    result = CliRunner().invoke(cli.application, ["status"])
    assert result.exit_code == 3
    assert "Nothing is running" in result.output
    assert not empty.exists()


def test_down_of_nothing(empty: Path) -> None:
    """`down` may be run at any time."""
    result = CliRunner().invoke(cli.application, ["down"])
    assert result.exit_code == 0
    assert "Nothing was running" in result.output
    assert not empty.exists()


@pytest.mark.parametrize("command", ["up", "down", "status", "test", "demo"])
def test_every_command_has_help(command: str) -> None:
    """A person learns what a command does without running it."""
    result = CliRunner().invoke(cli.application, [command, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_a_failure_has_a_cure_and_no_traceback(
    empty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person reads what to do, not a stack of files."""
    monkeypatch.setenv("GATEMESH_AMQP_URL", "amqp://u:p@127.0.0.1:1/")
    monkeypatch.setattr("sys.argv", ["mesh", "up"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    words = capsys.readouterr().err
    assert "GATEMESH_AMQP_URL" in words
    assert "what to do" in words
    assert "Traceback" not in words
    assert empty.exists()
