"""What the doctor says of a broker; the looking is tested on a real one."""

import pytest

from gatemesh_common.topology import DEAD_LETTERS, WORK_QUEUES
from gatemesh_ctl.doctor_broker import (
    MANY_WAIT,
    judge_lengths,
    judge_readers,
    judge_topology,
    judge_version,
    known_queues,
)
from gatemesh_ctl.findings import Level
from gatemesh_ctl.queues import QueueState


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("3.9.27", Level.WARNING),
        ("3.10.8", Level.OK),
        ("4.3.0", Level.OK),
        ("", Level.UNKNOWN),
    ],
)
def test_versions(version: str, level: Level) -> None:
    """Those that are tested are well."""
    assert judge_version(version).level is level


def test_every_kind_of_fault_in_the_topology_is_named() -> None:
    """Each with its names and its cure; none is one finding."""
    missing, other, closed = judge_topology(["a"], ["b"], ["c"])
    assert (missing.level, other.level, closed.level) == (Level.FAULT, Level.FAULT, Level.UNKNOWN)
    assert "a" in missing.what
    assert "b" in other.what
    [well] = judge_topology([], [], [])
    assert well.level is Level.OK


def test_all_queues_are_looked_at() -> None:
    """The dead letters too."""
    assert set(known_queues()) == {queue.name for queue in WORK_QUEUES} | {DEAD_LETTERS}


def test_readers_are_told_by_service() -> None:
    """The shadow may be left out; nothing works without the others."""
    found = judge_readers(
        [
            QueueState("executor.commands", 0, 0),
            QueueState("health_manager.verdicts", 0, 1),
            QueueState("health_manager.steps", 0, 1),
            QueueState("shadow.samples", 0, 0),
            QueueState(DEAD_LETTERS, 0, 0),
        ]
    )
    assert {one.check: one.level for one in found} == {
        "executor": Level.FAULT,
        "health_manager": Level.OK,
        "shadow": Level.WARNING,
    }
    assert "executor.commands" in found[0].what
    assert "up -d executor" in found[0].cure


@pytest.mark.parametrize(("waiting", "count"), [(MANY_WAIT - 1, 1), (MANY_WAIT, 2)])
def test_piles_are_told(waiting: int, count: int) -> None:
    """Dead letters are told in any case."""
    states = [QueueState("health_manager.verdicts", waiting, 1), QueueState(DEAD_LETTERS, 0, 0)]
    assert len(judge_lengths(states)) == count


def test_one_dead_letter_is_a_warning() -> None:
    """Somebody published what nobody can read."""
    [found] = judge_lengths([QueueState(DEAD_LETTERS, 1, 0)])
    assert found.level is Level.WARNING
    assert "dead-letters" in found.cure
