"""Many messages, one commit; the guilty one alone fails."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from gatemesh_common.errors import DatabaseUnavailableError, GatemeshError
from gatemesh_health_manager.batcher import Batcher, describe


class Table:
    """Keeps what is applied; refuses some items, and is away for a while."""

    def __init__(self, *, guilty: Sequence[int] = (), away: int = 0) -> None:
        self.batches: list[list[int]] = []
        self._guilty = set(guilty)
        self._away = away

    async def apply(self, items: Sequence[int]) -> None:
        """Apply all of them or none."""
        if self._away:
            self._away -= 1
            raise DatabaseUnavailableError("away")
        if self._guilty & set(items):
            raise GatemeshError("guilty")
        self.batches.append(list(items))


@asynccontextmanager
async def running(table: Table, largest: int = 200) -> AsyncIterator[Batcher[int]]:
    """Run a batcher over a table."""
    batcher = Batcher(table.apply, largest=largest, linger_s=0)
    task = asyncio.create_task(batcher.run())
    yield batcher
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def submit(batcher: Batcher[int], items: Sequence[int]) -> list[BaseException | None]:
    """Submit items at once and return what each of them met."""
    return await asyncio.gather(*map(batcher.submit, items), return_exceptions=True)


async def test_what_comes_together_is_applied_together() -> None:
    """One transaction for many."""
    table = Table()
    async with running(table) as batcher:
        assert await submit(batcher, range(150)) == [None] * 150
    assert table.batches == [list(range(150))]


async def test_a_batch_has_a_largest_size() -> None:
    """A backlog is worked off piece by piece."""
    table = Table()
    async with running(table, largest=20) as batcher:
        await submit(batcher, range(50))
    assert [len(batch) for batch in table.batches] == [20, 20, 10]


async def test_only_the_guilty_one_fails() -> None:
    """A poison message does not poison its neighbours."""
    table = Table(guilty=[3])
    async with running(table) as batcher:
        outcomes = await submit(batcher, range(5))
    assert [type(outcome) for outcome in outcomes] == [type(None)] * 3 + [
        GatemeshError,
        type(None),
    ]
    assert table.batches == [[0], [1], [2], [4]]


async def test_a_passing_fault_is_waited_out() -> None:
    """Nobody hears of it."""
    table = Table(away=2)
    async with running(table) as batcher:
        assert await submit(batcher, [1, 2]) == [None, None]
    assert table.batches == [[1, 2]]


async def test_who_gives_up_waiting_disturbs_nobody() -> None:
    """A cancelled handler leaves its message unacknowledged; the batch goes on."""
    table = Table()
    async with running(table) as batcher:
        gone = asyncio.create_task(batcher.submit(1))
        stays = asyncio.create_task(batcher.submit(2))
        await asyncio.sleep(0)
        gone.cancel()
        await stays
    assert 2 in table.batches[0]


async def test_a_batcher_that_ends_leaves_nobody_waiting() -> None:
    """Their messages come again to the next one."""
    never = asyncio.Event()

    async def hang(_items: Sequence[int]) -> None:
        await never.wait()

    batcher = Batcher(hang, linger_s=0)
    task = asyncio.create_task(batcher.run())
    waiting = asyncio.create_task(batcher.submit(1))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_errors_are_named_without_data() -> None:
    """The log holds no text of users."""
    assert describe(GatemeshError("ours")) == "ours"
    assert describe(ValueError("secret")) == "ValueError"
