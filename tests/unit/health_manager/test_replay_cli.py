"""The command line: what it refuses, what it prints, how it ends."""

import json
from pathlib import Path

import pytest
from benchmarks.recorded import MadeUpPool

from gatemesh_health_manager import replay_cli
from gatemesh_health_manager.history import write_history
from gatemesh_health_manager.replay_cli import ALIKE, WRONG, main

SPAN = ("--from", "2026-11-29", "--to", "2026-12-01T00:00+08:00")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Write a history in which an engine goes bad."""
    pool = MadeUpPool(("engine-0", "engine-1", "engine-2"), seed=5, mishaps=False)
    pool.live(30, 10)
    pool.engines["engine-1"].failing_share = 0.9
    pool.live(120, 10)
    path = tmp_path / "history.jsonl.gz"
    write_history(path, pool.recorder.history())
    return path


def test_identical_decisions_end_with_0(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rules of then are in the file."""
    assert main([*SPAN, "--history", str(saved), "--json"]) == ALIKE
    found = json.loads(capsys.readouterr().out)
    assert found["identical"]
    assert found["transitions"] > 3


def test_an_old_file_is_replayed_whole(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a span it is all of the file that counts, and a span cuts it."""
    assert main(["--history", str(saved), "--json"]) == ALIKE
    whole = json.loads(capsys.readouterr().out)
    begin = "2026-11-30T00:00:01"
    assert main(["--history", str(saved), "--json", "--to", begin]) == ALIKE
    part = json.loads(capsys.readouterr().out)
    assert whole["transitions"] > part["transitions"]
    assert whole["verdicts"] > part["verdicts"]
    assert main(["--history", str(saved), "--from", "2027-01-01"]) == ALIKE
    assert "nothing was decided in that time" in capsys.readouterr().out


def test_other_rules_are_compared(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No condition, no incident."""
    rules = tmp_path / "blind.toml"
    rules.write_text(
        "[defaults.condition_a]\nenabled = false\n[defaults.condition_c]\nenabled = false\n"
    )
    asked = [*SPAN, "--history", str(saved), "--policy", str(rules)]
    assert main([*asked, "--json"]) == ALIKE
    found = json.loads(capsys.readouterr().out)
    assert (found["stored"]["incidents"], found["other"]["incidents"]) == (1, 0)
    assert found["stored"]["out_of_rotation_s"] > 0
    assert main(asked) == ALIKE
    assert "no incident" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--history", "none.gz"], "none.gz: cannot be read", id="no-file"),
        pytest.param([], "--database: not given", id="no-database"),
        pytest.param(
            ["--history", "{saved}", "--policy", "none"], "none: cannot be read", id="rules"
        ),
        pytest.param(["--database", "postgresql://127.0.0.1:1/x"], "database", id="away"),
    ],
)
def test_what_is_missing_is_named(
    arguments: list[str],
    said: str,
    saved: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the way out; exit code 2."""
    monkeypatch.delenv(replay_cli.DATABASE_VARIABLE, raising=False)
    assert main([one.format(saved=saved) for one in arguments]) == WRONG
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--from", "yesterday"], ["--from", "2026-12-02", "--to", "2026-12-01"]]
)
def test_wrong_moments_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The option is named."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == WRONG
    assert "--from" in capsys.readouterr().err
