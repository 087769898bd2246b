"""What the doctor says of a broker; the looking is tested on a real one."""

from typing import Self, cast

import pytest
from aio_pika.abc import AbstractChannel
from aiormq.exceptions import ChannelAccessRefused, ChannelNotFoundEntity

from gatemesh_common.topology import DEAD_LETTERS, WORK_QUEUES
from gatemesh_ctl.doctor_broker import (
    MANY_WAIT,
    WORDED,
    Standing,
    judge_lengths,
    judge_readers,
    judge_topology,
    judge_version,
    known_queues,
    look_at_rights,
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
    names = dict(zip("abcde", Standing, strict=True))
    found = judge_topology(names)
    assert [one.level for one in found] == [
        *(Level.FAULT, Level.FAULT, Level.UNKNOWN, Level.UNKNOWN),
    ]
    told = dict(zip(WORDED, found, strict=True))
    for name, each in names.items():
        if each not in (Standing.SAME, Standing.CLOSED):
            assert told[each].what.endswith(f": {name}")
    [well] = judge_topology({"a": Standing.SAME})
    assert well.level is Level.OK
    assert set(WORDED) == set(Standing) - {Standing.SAME}


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


class Refusing:
    """A channel, and an exchange on it, whose broker answers so."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error
        self.opened_anew = False

    async def get_exchange(self, name: str, *, ensure: bool) -> Self:
        """Return an exchange without asking for it."""
        assert not ensure
        return self

    async def unbind(self, exchange: str, routing_key: str) -> None:
        """Refuse, or take nothing away."""
        if self._error is not None:
            raise self._error

    async def reopen(self) -> None:
        """Be a channel again."""
        self.opened_anew = True


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (None, Level.OK),
        (ChannelAccessRefused("access to exchange 'vllm_control' in vhost '/'"), Level.FAULT),
        (ChannelAccessRefused("write access to exchange 'vllm_control' in vhost '/'"), Level.FAULT),
        (ChannelAccessRefused("read access to exchange 'gatemesh.dead' in vhost '/'"), Level.OK),
        (ChannelNotFoundEntity("no exchange 'vllm_control'"), Level.UNKNOWN),
    ],
)
async def test_rights_are_told_by_the_exchange_that_is_named(
    error: Exception | None, level: Level
) -> None:
    """Brokers before 3.11 do not say which kind of access they refuse; reading comes last."""
    channel = Refusing(error)
    assert (await look_at_rights(cast(AbstractChannel, channel))).level is level
    assert channel.opened_anew is (error is not None)
