"""Reading /proc."""

import subprocess
from pathlib import Path

import pytest

from gatemesh_executor.backends.base import StopFailedError
from gatemesh_executor.backends.process_group import (
    ProcessStat,
    kill_group,
    living_members,
    orphans,
    parse_stat,
    read_command,
    read_stat,
)


def table(folder: Path, *rows: tuple[int, str, int, int]) -> Path:
    """Write a /proc with these processes: pid, state, group, session."""
    for pid, state, group, session in rows:
        (folder / str(pid)).mkdir()
        (folder / str(pid) / "stat").write_text(f"{pid} (x) {state} 1 {group} {session} 0 -1")
    (folder / "self").mkdir()
    (folder / "99").mkdir()
    return folder


@pytest.mark.parametrize("name", ["python", "VLLM::EngineCore", "a) S 1 2 3 (b", ""])
def test_any_name_of_a_command_is_read(name: str) -> None:
    """Names may hold brackets and spaces."""
    found = parse_stat(f"17 ({name}) S 5 16 15 0 -1 4194560")
    assert found == ProcessStat(17, "S", 5, 16, 15)


def test_a_process_that_is_gone_is_nothing(tmp_path: Path) -> None:
    """It may go between two reads."""
    assert read_stat(1, tmp_path) is None
    assert read_command(1, tmp_path) == b""
    assert living_members(1, tmp_path / "no-proc-here") == ()


def test_zombies_do_not_live(tmp_path: Path) -> None:
    """Nobody has reaped them yet; they hold nothing."""
    proc = table(tmp_path, (10, "Z", 10, 1), (11, "S", 10, 1), (12, "X", 10, 1), (13, "S", 13, 1))
    assert [member.pid for member in living_members(10, proc)] == [11]


def test_orphans_are_what_a_dead_leader_left(tmp_path: Path) -> None:
    """Its workers, as long as they are of the same session."""
    proc = table(tmp_path, (11, "S", 10, 1), (12, "R", 10, 1))
    assert [member.pid for member in orphans(10, 1, proc)] == [11, 12]


def test_a_number_given_to_somebody_new_is_left_alone(tmp_path: Path) -> None:
    """A living leader, or another session, means that it was."""
    proc = table(tmp_path, (10, "S", 10, 1), (11, "S", 10, 1), (21, "S", 20, 7))
    assert orphans(10, 1, proc) == ()
    assert orphans(20, 1, proc) == ()


def test_a_group_of_somebody_else_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of a command fails, and says what to change."""

    def refuse(_group: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr("os.killpg", refuse)
    with pytest.raises(StopFailedError, match="user of the engines"):
        kill_group(10)


def test_killing_a_group_ends_it() -> None:
    """And doing so again is harmless."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        kill_group(process.pid)
        assert process.wait(10) == -9
    kill_group(process.pid)
