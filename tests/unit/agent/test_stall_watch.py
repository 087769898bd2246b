"""A stalled instance is reported once in a while."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from tests.unit.agent.test_stall_check import LIFE, waiting

from gatemesh_agent.reporting import Life, Reporter
from gatemesh_agent.stall_check import Stall
from gatemesh_agent.stall_watch import StallWatch, nobody, outcome_of
from gatemesh_agent.telemetry import Telemetry
from gatemesh_agent.watchdog import Quiet
from gatemesh_common.messages import Attribution, Message, Reason, Verdict

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HARD = Stall(hard=True, counters="unchanged", own="silent")


heeded: list[object] = []
"""Lives that those who wait were told of."""


class FakeWatch:
    """One life is quiet."""

    def quiet(self, _now_s: float) -> list[Quiet]:
        """Return it."""
        return [Quiet(waiting(), 20.0, 2, overdue=True)]

    def moved_since(self, _life: object, _then_s: float) -> bool:
        """Nothing moved."""
        return False


class FakeCheck:
    """Finds what it is told to find."""

    def __init__(self, found: Stall | None) -> None:
        self.found = found
        self.looks = 0

    async def look(self, _quiet: Quiet, moved: Callable[[], bool]) -> Stall | None:
        """Count the look."""
        self.looks += 1
        assert not moved()
        await asyncio.sleep(0)
        return self.found


async def looked(
    found: Stall | None, *, out: bool = False, heed: Callable[[Life], None] = heeded.append
) -> tuple[FakeCheck, list[Message]]:
    """Look a few times in a row; return the looks and what was published."""
    published: list[Message] = []
    heeded.clear()
    reporter = Reporter("a", "p", Telemetry("a", "p", NOON), published.append, lambda: NOON)
    check = FakeCheck(found)
    stalls = StallWatch(
        watch=FakeWatch(),  # type: ignore[arg-type]
        check=check,  # type: ignore[arg-type]
        reporter=reporter,
        is_out=lambda _: out,
        threshold_s=20.0,
        heed=heed,
    )
    for now_s in (0.0, 0.1, 0.2):
        stalls.look(now_s)
        for _ in range(5):
            await asyncio.sleep(0)
    return check, published


async def test_a_stall_is_reported_once() -> None:
    """With what was seen; nobody's request is at fault."""
    check, published = await looked(HARD)
    [verdict] = published
    assert heeded == [LIFE]
    assert isinstance(verdict, Verdict)
    assert (verdict.reason, verdict.hard, verdict.instance_id) == (Reason.STALLED, True, "e")
    assert (verdict.attribution, verdict.threshold) == (Attribution.INSTANCE, 20.0)
    assert (verdict.details["waiting"], verdict.details["counters"]) == (2, "unchanged")
    assert check.looks == 1


async def test_one_that_is_out_is_not_accused() -> None:
    """It drains, or is being restarted; those who wait there are told all the same."""
    check, published = await looked(HARD, out=True)
    assert check.looks == 1
    assert heeded == [LIFE]
    assert published == []


async def test_one_that_is_out_is_not_looked_at_for_nothing() -> None:
    """Where no request can leave it, a look is a generation too many."""
    check, published = await looked(HARD, out=True, heed=nobody)
    assert check.looks == 0
    assert published == []


async def test_a_look_may_find_nothing() -> None:
    """And is not repeated at once."""
    check, published = await looked(None)
    assert (check.looks, published) == (1, [])
    assert outcome_of(None) == "nothing"
    assert outcome_of(HARD) == "hard"
    assert LIFE.instance_id == "e"
