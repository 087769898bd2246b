"""Single items in batches."""

import asyncio
from collections.abc import Sequence

import pytest

from gatemesh_shadow.batching import Batcher


async def test_items_share_a_batch() -> None:
    """What comes together is worked on together, and everyone gets its own result."""
    seen: list[int] = []

    def double(items: Sequence[int]) -> list[int]:
        seen.append(len(items))
        return [2 * item for item in items]

    batcher = Batcher(double, most=4, wait_s=0.0)
    results = await asyncio.gather(*(batcher.submit(item) for item in range(10)))
    assert results == [2 * item for item in range(10)]
    assert seen == [4, 4, 2]
    assert await batcher.submit(21) == 42
    batcher.close()


async def test_an_error_reaches_every_waiter() -> None:
    """And the next batch is tried all the same."""
    calls: list[int] = []

    def fail_once(items: Sequence[int]) -> Sequence[int]:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("no model")
        return items

    batcher = Batcher(fail_once, most=4, wait_s=0.0)
    results = await asyncio.gather(batcher.submit(1), batcher.submit(2), return_exceptions=True)
    assert [type(one) for one in results] == [ValueError, ValueError]
    assert await batcher.submit(3) == 3
    batcher.close()


async def test_one_that_left_is_no_fault() -> None:
    """Its result is thrown away."""
    batcher: Batcher[int, int] = Batcher(list, most=4, wait_s=0.0)
    leaving = asyncio.create_task(batcher.submit(1))
    staying = asyncio.create_task(batcher.submit(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == 2
    with pytest.raises(asyncio.CancelledError):
        await leaving
    batcher.close()
