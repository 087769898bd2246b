"""How much the shadow may ask."""

import asyncio

import pytest
from tests.unit.shadow.parts import instance

from gatemesh_shadow.budget import Allowance, Budget

ONE, OTHER = instance("a"), instance("b")


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now_s


async def take(budget: Budget, done: asyncio.Event) -> str:
    """Hold a turn until told."""
    async with budget.turn([ONE, OTHER]) as chosen:
        await done.wait()
        return chosen.instance_id


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("at_once", "per_instance", "running"), [(2, 1, 2), (1, 1, 1), (8, 1, 2), (8, 2, 4)]
)
async def test_never_more_at_once(at_once: int, per_instance: int, running: int) -> None:
    """Overall and per instance; who waits gets the next free turn."""
    budget = Budget(Allowance(at_once, per_instance, 1e9), Hands())
    budget.clock = iter(range(10_000)).__next__
    done = asyncio.Event()
    tasks = [asyncio.create_task(take(budget, done)) for _ in range(5)]
    await settle()
    assert sum(budget.busy.values()) == running
    done.set()
    assert len(await asyncio.gather(*tasks)) == 5
    assert sum(budget.busy.values()) == 0


async def test_turns_alternate() -> None:
    """Every judge gets its share."""
    budget = Budget(Allowance(8, 8, 1e9), iter(range(10_000)).__next__)
    chosen = []
    for _ in range(4):
        async with budget.turn([ONE, OTHER]) as one:
            chosen.append(one.instance_id)
    assert chosen == ["a", "b", "a", "b"]


async def test_rate_per_instance() -> None:
    """A second turn within the interval waits for the clock."""
    clock = Hands()
    budget = Budget(Allowance(8, 8, 100.0), clock)
    async with budget.turn([ONE]):
        pass
    second = asyncio.create_task(take_and_leave(budget))
    await settle()
    assert not second.done()
    clock.now_s = 0.011
    assert await asyncio.wait_for(second, 5) == "a"


async def take_and_leave(budget: Budget) -> str:
    """One short turn."""
    async with budget.turn([ONE]) as chosen:
        return chosen.instance_id


async def test_a_failing_turn_is_given_back() -> None:
    """Whatever happens in it."""
    budget = Budget(Allowance(1, 1, 1e9), iter(range(10_000)).__next__)
    with pytest.raises(ValueError, match="x"):
        async with budget.turn([ONE]):
            raise ValueError("x")
    async with budget.turn([ONE]):
        assert budget.busy == {"a": 1}


async def test_an_instance_that_is_free_while_we_look_is_taken() -> None:
    """Time passes between two looks at the clock, and nobody else is there to wake us."""
    looks = iter([0.0, 0.0, 0.005, 0.02, 0.03])
    budget = Budget(Allowance(8, 8, 100.0), looks.__next__)
    async with asyncio.timeout(5):
        async with budget.turn([ONE]):
            pass
        async with budget.turn([ONE]) as taken:
            assert taken is ONE
