"""When a manager starts although days are missing, and what it says meanwhile."""

import pytest

from gatemesh_common.errors import DatabaseUnavailableError, GatemeshError, LockHeldError
from gatemesh_health_manager.first_days import prepare_days, worded
from gatemesh_health_manager.store_days import Blockade, Holder

DUMP = Holder("verdicts_other", "AccessShareLock", 17, "gatemesh", "pg_dump")
TODAY = Blockade(("verdicts",), (DUMP,))
LATER = Blockade((), (DUMP,))


class FakeDays:
    """Fails as often as it has faults, and tells of one blockade after the other."""

    def __init__(self, *faults: GatemeshError, blockades: tuple[Blockade, ...] = ()) -> None:
        self._faults = list(faults)
        self._blockades = list(blockades)
        self.tries = 0
        self.waited_s = 0.0

    async def prepare(self) -> int:
        """Fail while there are faults."""
        self.tries += 1
        if self._faults:
            raise self._faults.pop(0)
        return 1

    async def blockade(self) -> Blockade:
        """Return the next one."""
        return self._blockades.pop(0)

    async def sleep(self, seconds: float) -> None:
        """Note the wait."""
        self.waited_s += seconds


def lines(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, object]]:
    """Return what was logged under a name."""
    return [vars(one) for one in caplog.records if one.msg == event]


async def test_days_that_can_be_made_are_made_once() -> None:
    """The usual start."""
    days = FakeDays()
    await prepare_days(days, days.sleep)
    assert (days.tries, days.waited_s) == (1, 0)


async def test_a_lock_on_days_to_come_holds_up_no_start(caplog: pytest.LogCaptureFixture) -> None:
    """A dump over midnight may take hours; who holds what is told."""
    days = FakeDays(LockHeldError("55P03"), blockades=(LATER,))
    await prepare_days(days, days.sleep)
    assert (days.tries, days.waited_s) == (1, 0)
    [line] = lines(caplog, "days_made_later")
    assert line["locks"] == worded(LATER)


async def test_without_today_nothing_starts(caplog: pytest.LogCaptureFixture) -> None:
    """The lock in the way is told once, and the way out."""
    days = FakeDays(*[LockHeldError("55P03")] * 3, blockades=(TODAY, TODAY, TODAY))
    await prepare_days(days, days.sleep)
    assert days.tries == 4
    assert days.waited_s > 0
    [line] = lines(caplog, "today_not_made")
    assert line["tables"] == "verdicts"
    assert "pg_dump (pid 17, gatemesh) holds AccessShareLock on verdicts_other" in str(line)
    assert "pg_terminate_backend" in str(line["cure"])


async def test_another_lock_is_told_anew(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever ended the first one sees the next."""
    other = Blockade(("verdicts",), ())
    days = FakeDays(*[LockHeldError("55P03")] * 3, blockades=(TODAY, other, LATER))
    await prepare_days(days, days.sleep)
    assert len(lines(caplog, "today_not_made")) == 2
    assert len(lines(caplog, "days_made_later")) == 1


async def test_a_database_that_is_away_is_waited_for() -> None:
    """Nobody's lock is to blame."""
    days = FakeDays(DatabaseUnavailableError("away"))
    await prepare_days(days, days.sleep)
    assert days.tries == 2


@pytest.mark.parametrize(
    ("holders", "words"),
    [
        ((), "none any more"),
        (
            (Holder("verdicts", "ShareLock", 5, "", ""),),
            "a session (pid 5, ) holds ShareLock on verdicts",
        ),
        (
            (Holder("verdicts_other", "RowExclusiveLock", None, "", ""), DUMP),
            "a prepared transaction (pg_prepared_xacts) holds RowExclusiveLock on verdicts_other; "
            "pg_dump (pid 17, gatemesh) holds AccessShareLock on verdicts_other",
        ),
    ],
)
def test_holders_are_named(holders: tuple[Holder, ...], words: str) -> None:
    """By what a person can end."""
    assert worded(Blockade((), holders)) == words
