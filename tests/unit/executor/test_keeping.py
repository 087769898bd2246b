"""One balancer, kept to what is wished."""

import asyncio
from dataclasses import replace

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_executor.balancers.base import BalancerUnavailableError, Server, Standing
from gatemesh_executor.balancers.fake import FULL_WEIGHT, FakeBalancer
from gatemesh_executor.balancers.keeping import Keeper
from gatemesh_executor.metrics import BALANCER_FAULTS

ONE, OTHER = Server("b", "s1"), Server("b", "s2")
MAINTENANCE = Standing(out=True, weight=100, full_weight=FULL_WEIGHT, by_hand=True)


class SlowBalancer(FakeBalancer):
    """Lets others run before it does anything."""

    async def look(self, server: Server) -> Standing:
        """Look after a while."""
        await asyncio.sleep(0)
        return await super().look(server)


class SlippingBalancer(FakeBalancer):
    """Lets a request in just before it takes a server out."""

    async def take_out(self, server: Server) -> None:
        """Count one, then do it."""
        self.standings[server] = replace(await self.look(server), sessions=1)
        await super().take_out(server)


def keeper(balancer: FakeBalancer, wishes: dict[Server, float]) -> Keeper:
    """Return a keeper of two servers."""
    return Keeper("front", balancer, frozenset((ONE, OTHER)), lambda: wishes)


def faults() -> float:
    """Return how many were counted."""
    return float(BALANCER_FAULTS.labels(balancer="front")._value.get())


async def test_what_was_forgotten_comes_back() -> None:
    """At the next look."""
    balancer = FakeBalancer()
    kept = keeper(balancer, {ONE: 0.0, OTHER: 0.5})
    for _ in range(2):
        await kept.assert_again()
        assert (await balancer.look(ONE)).out
        assert (await balancer.look(OTHER)).weight == 50
        balancer.forget()


async def test_a_fault_is_counted_each_time_and_raised_never(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is logged once, and its end is."""
    balancer = FakeBalancer()
    kept = keeper(balancer, {ONE: 0.0})
    balancer.down, before = True, faults()
    for _ in range(3):
        await kept.assert_again()
    assert faults() == before + 3
    balancer.down = False
    await kept.assert_again()
    told = [record.message for record in caplog.records if "balancer_a" in record.message]
    assert told.count("balancer_at_fault") == 1
    assert told.count("balancer_answers") == 1
    assert (await balancer.look(ONE)).out


async def test_a_drain_is_not_undone_by_an_older_wish() -> None:
    """The wish is read only when nobody else is at work."""
    balancer, wishes = SlowBalancer(), {ONE: 0.0}
    kept = keeper(balancer, wishes)
    await kept.assert_again()
    wishes[ONE] = 1.0
    undoing = asyncio.create_task(kept.assert_again())
    await asyncio.sleep(0)
    wishes[ONE] = 0.0
    await asyncio.gather(undoing, kept.take_out(ONE), kept.assert_again())
    assert (await balancer.look(ONE)).out


async def test_an_unknown_server_is_a_wrong_setting() -> None:
    """Told at the start, before anything depends on it."""
    balancer = FakeBalancer()
    balancer.down = True
    assert not await keeper(balancer, {}).verify()
    balancer.down = False
    assert await keeper(balancer, {}).verify()
    balancer.unknown.add(OTHER)
    with pytest.raises(SettingsError, match="b/s2"):
        await keeper(balancer, {}).verify()


async def test_what_came_back_is_no_confirmation() -> None:
    """It is taken out again, and the next look confirms it."""
    balancer = FakeBalancer()
    kept = keeper(balancer, {ONE: 0.0})
    with pytest.raises(BalancerUnavailableError, match="had come back"):
        await kept.confirm_out(ONE)
    await kept.confirm_out(ONE)


async def test_counting_takes_out_again_what_came_back() -> None:
    """A reload in the middle of a drain; what slipped in meanwhile is waited for."""
    balancer = SlippingBalancer()
    assert await keeper(balancer, {}).sessions(ONE) == 1
    assert (await balancer.look(ONE)).out


async def test_maintenance_by_hand_is_told_at_a_readmission() -> None:
    """Nobody wonders why no request comes."""
    balancer = FakeBalancer()
    kept = keeper(balancer, {})
    assert await kept.put_back(ONE, 1.0) is None
    balancer.standings[ONE] = MAINTENANCE
    assert await kept.put_back(ONE, 1.0) == "front: b/s1 stays in maintenance"
    assert (await balancer.look(ONE)).out
