"""The command line without broker and database."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gatemesh_ctl import cli


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GATEMESH_AMQP_URL", raising=False)
    monkeypatch.delenv("GATEMESH_DATABASE_URL", raising=False)
    monkeypatch.setenv("GATEMESH_STATE", str(tmp_path))


COMMANDS = (
    *("status", "instances", "incidents", "verdicts", "timeline", "commands", "refused"),
    *("requests", "dead-letters", "watch", "doctor"),
)


@pytest.mark.parametrize("command", [*COMMANDS, "request", "explain"])
def test_every_command_has_help_and_json(command: str) -> None:
    """People and programs use the same ones."""
    result = CliRunner().invoke(cli.application, [command, "--help"])
    assert result.exit_code == 0
    assert "--json" in result.output


@pytest.mark.parametrize("command", COMMANDS[1:-1])
def test_unknown_addresses_are_told(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the variable to set, and without a traceback."""
    monkeypatch.setattr("sys.argv", ["gatemesh-ctl", command])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == cli.EXIT_WRONG
    assert "GATEMESH_" in capsys.readouterr().err


def test_a_status_tells_all_that_it_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    """Broker and database at once."""
    result = CliRunner().invoke(cli.application, ["status"])
    assert result.exit_code == cli.EXIT_FAILED
    text = capsys.readouterr().err + result.output
    assert "GATEMESH_AMQP_URL" in text
    assert "GATEMESH_DATABASE_URL" in text


def test_an_unknown_action_is_told_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No address is needed to know that."""
    monkeypatch.setattr("sys.argv", ["gatemesh-ctl", "request", "explode", "engine-0"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "there is no action 'explode'" in capsys.readouterr().err


HEAVY = (
    "aio_pika",
    "asyncio",
    "cryptography",
    "faststream",
    "psycopg",
    "pydantic",
    "rich",
    "sqlalchemy",
)
"""What takes longer to load than help takes to read."""


def test_help_waits_for_no_library() -> None:
    """People call it all day, and the shell calls it for every word that it completes."""
    loaded = "import sys, gatemesh_ctl.cli; print(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", loaded], check=True, capture_output=True, text=True, timeout=60
    )
    assert not set(HEAVY) & set(ended.stdout.split())


def test_shells_are_served() -> None:
    """Typer's own options; the script names the program."""
    result = CliRunner().invoke(cli.application, ["--help"])
    assert "--install-completion" in result.output
    assert "--show-completion" in result.output
