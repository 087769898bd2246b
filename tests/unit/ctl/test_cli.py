"""The command line without broker and database."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gatemesh_ctl import cli
from gatemesh_ctl.queues import QueueState
from gatemesh_ctl.store import Row


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GATEMESH_AMQP_URL", raising=False)
    monkeypatch.delenv("GATEMESH_DATABASE_URL", raising=False)
    monkeypatch.setenv("GATEMESH_STATE", str(tmp_path))


COMMANDS = (
    *("status", "instances", "incidents", "verdicts", "timeline", "commands", "refused"),
    *("requests", "dead-letters"),
)


@pytest.mark.parametrize("command", [*COMMANDS, "request"])
def test_every_command_has_help_and_json(command: str) -> None:
    """People and programs use the same ones."""
    result = CliRunner().invoke(cli.application, [command, "--help"])
    assert result.exit_code == 0
    assert "--json" in result.output


@pytest.mark.parametrize("command", COMMANDS[1:])
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


def test_pools_are_summed_up() -> None:
    """One line each, whatever their size."""
    health = [
        {
            "pool": "chat",
            "state": "healthy",
            "in_rotation": True,
            "paused": False,
            "mode": "observe",
        },
        {"pool": "chat", "state": "suspect", "in_rotation": True, "paused": False},
        {"pool": "chat", "state": "draining", "in_rotation": False, "paused": False},
        {"pool": "code", "state": "healthy", "in_rotation": True, "paused": True},
    ]
    unbraked = {"braked": False, "brake_reason": "", "held_incidents": 0}
    braked = {"braked": True, "brake_reason": "3 of 4", "held_incidents": 2}
    known = [{"pool": "chat", **unbraked}, {"pool": "code", **braked}]
    chat, code = cli.pool_rows(health, known)
    assert chat == {
        "pool": "chat",
        "instances": 3,
        "in_rotation": 2,
        "mode": "observe",
        "paused": False,
        "states": "1 draining, 1 healthy, 1 suspect",
        **unbraked,
    }
    assert code["paused"]
    assert cli.brakes_on([chat, code]) == [
        "pool code: the fleet brake is on (3 of 4), 2 incidents are held: "
        "gatemesh-ctl request reset_brake --pool code --backlog skip|replay"
    ]


def test_what_needs_a_person_is_said() -> None:
    """Queues that nobody reads, and dead letters."""
    rows = [
        cli.queue_row(QueueState("executor.commands", 0, 0)),
        cli.queue_row(QueueState("health_manager.verdicts", 5, 1)),
        cli.queue_row(QueueState("gatemesh.dead.letters", 2, 0)),
    ]
    assert cli.remarks(rows) == [
        "nobody reads executor.commands: is the executor running?",
        "2 dead letters: gatemesh-ctl dead-letters",
    ]


def test_unguarded_answers_are_told() -> None:
    """Per pool, and only where there are any."""
    rows: list[Row] = [
        {"pool": "chat", "requests": 40, "tokens": 900, "unguarded": 3},
        {"pool": "code", "requests": 5, "tokens": 50, "unguarded": 0},
    ]
    [line] = cli.unguarded_in(rows)
    assert line.startswith("pool chat: 3 of 40 answers within an hour passed unguarded")
