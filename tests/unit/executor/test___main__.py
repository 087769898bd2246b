"""Decisions of the composition root."""

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_executor.__main__ import PROGRAMS_DEADLINE_S, verify
from gatemesh_executor.backends.base import ProgramMissingError
from gatemesh_executor.backends.fake import FakeBackend

from .conftest import INSTANCES, Time


class Learning(FakeBackend):
    """A platform that learns of its programs after some tries."""

    def __init__(self, *faults: SettingsError) -> None:
        super().__init__(INSTANCES, Time().clock)
        self.faults = list(faults)

    async def verify(self) -> None:
        """Raise the next fault."""
        if self.faults:
            raise self.faults.pop(0)


async def test_a_program_may_be_added_a_little_later() -> None:
    """While a stack starts, supervisord answers before it knows them all."""
    backend = Learning(*[ProgramMissingError("unknown")] * 5)
    await verify(backend, Time().pace)
    assert backend.faults == []


async def test_a_missing_program_is_told_in_the_end() -> None:
    """A typing error stays one."""
    time = Time()
    with pytest.raises(ProgramMissingError):
        await verify(Learning(*[ProgramMissingError("unknown")] * 100), time.pace)
    assert time.elapsed_s == PROGRAMS_DEADLINE_S


async def test_a_broken_promise_is_told_at_once() -> None:
    """Waiting would not mend it."""
    time = Time()
    with pytest.raises(SettingsError):
        await verify(Learning(SettingsError("killasgroup")), time.pace)
    assert time.elapsed_s == 0
