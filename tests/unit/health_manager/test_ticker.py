"""Who leads, ticks; a passing fault costs one round."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from gatemesh_common.errors import DatabaseUnavailableError
from gatemesh_common.messages import Baseline, CaptureTerms, RoutingTable
from gatemesh_common.publisher import Publisher
from gatemesh_health_manager.policy import Policy, parse_policy
from gatemesh_health_manager.policy_file import PolicyFile
from gatemesh_health_manager.store import Store
from gatemesh_health_manager.store_baselines import BaselineStore
from gatemesh_health_manager.store_days import DayStore
from gatemesh_health_manager.ticker import Leadership, Ticker

from .samples import NOW

TABLE = RoutingTable(timestamp=NOW, pool="default", version=3, instances=())
BASELINE = Baseline(timestamp=NOW, pool="default", model_version="m", version=7)


class Parts:
    """Stands for store, broker and lock; fails a few times if told so."""

    def __init__(self, *, leads: bool = True, faults: int = 0) -> None:
        self.leads = leads
        self.faults = faults
        self.done: list[str] = []
        self.ticked = asyncio.Event()

    async def held(self) -> bool:
        """Tell whether this one leads."""
        return self.leads

    async def tick(self) -> None:
        """Count a tick."""
        if self.faults:
            self.faults -= 1
            raise DatabaseUnavailableError("away")
        self.done.append("tick")
        self.ticked.set()

    async def routing_tables(self) -> list[RoutingTable]:
        """Return one table."""
        return [TABLE]

    async def publish(self, message: Any) -> None:
        """Count a table."""
        told = message.text if isinstance(message, CaptureTerms) else message.version
        self.done.append(f"{message.pool} {told}")

    async def settle(self) -> None:
        """Count a round."""
        self.done.append("settle")

    async def baselines(self) -> list[Baseline]:
        """Return one baseline."""
        return [BASELINE]

    async def forget(self, older_than: timedelta | None = None) -> int:
        """Count a clean-up: of days, or of baselines."""
        self.done.append(f"forget {'baselines' if older_than is None else older_than}")
        return 0

    @property
    def policy(self) -> Policy:
        """Return rules that allow text."""
        return parse_policy('[defaults.capture]\ntext = "window"\n')

    async def forget_captures(self, older_than: timedelta) -> int:
        """Count a clean-up of captures."""
        self.done.append(f"forget captures {older_than}")
        return 0

    async def prepare(self) -> int:
        """Count days made."""
        self.done.append("prepare days")
        return 0

    async def forget_inbox(self, older_than: timedelta) -> int:
        """Count a clean-up."""
        self.done.append(f"forget {older_than}")
        return 0

    async def forget_history(self, older_than: timedelta) -> int:
        """Count a clean-up."""
        self.done.append(f"forget inputs {older_than}")
        return 0

    async def remember_fleet(self) -> None:
        """Note that the fleet was kept."""
        self.done.append("remember")


def ticker(parts: Parts) -> Ticker:
    """Return a ticker of these parts."""
    return Ticker(
        cast(Store, parts),
        cast(Publisher, parts),
        cast(Leadership, parts),
        cast(BaselineStore, parts),
        cast(DayStore, parts),
        tick_s=0.001,
    )


async def test_the_leader_ticks_and_repeats() -> None:
    """Deadlines, routing tables, baselines and terms."""
    parts = Parts()
    await ticker(parts).tick()
    await ticker(parts).beat()
    await ticker(parts).measure()
    await ticker(parts).tell_terms()
    await ticker(parts).clean()
    await ticker(parts).remember()
    assert parts.done == [
        "tick",
        "default 3",
        "settle",
        "default 7",
        "default window",
        "prepare days",
        "forget 90 days, 0:00:00",
        "forget captures 14 days, 0:00:00",
        "forget 3 days, 0:00:00",
        "forget inputs 30 days, 0:00:00",
        "forget baselines",
        "remember",
    ]


async def test_the_others_do_nothing() -> None:
    """With two managers only one ticks."""
    parts = Parts(leads=False)
    await ticker(parts).tick()
    await ticker(parts).beat()
    await ticker(parts).measure()
    await ticker(parts).tell_terms()
    await ticker(parts).clean()
    await ticker(parts).remember()
    assert parts.done == []


async def until_ticked(parts: Parts, run: Callable[[], Any]) -> None:
    """Run until the first tick."""
    task = asyncio.create_task(run())
    await asyncio.wait_for(parts.ticked.wait(), 10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_passing_fault_costs_one_round() -> None:
    """The next one comes."""
    parts = Parts(faults=2)
    await until_ticked(parts, ticker(parts).run)
    assert "tick" in parts.done


async def test_a_round_that_fails_in_an_unforeseen_way_costs_no_other() -> None:
    """Deadlines are looked at though baselines cannot be reckoned."""
    parts = Parts()

    async def settle() -> None:
        raise ValueError("cannot convert float NaN to integer")

    parts.settle = settle  # type: ignore[method-assign]
    await until_ticked(parts, ticker(parts).run)
    assert "tick" in parts.done


class Rules:
    """Stands for the file, the store and the baselines; the store is away a few times."""

    def __init__(self, in_file: Policy | None, faults: int = 0) -> None:
        self.in_file = in_file
        self.faults = faults
        self.policy = Policy()
        self.learning_by = Policy()
        self.taken_over = 0

    def look(self) -> Policy | None:
        """Return what the file holds."""
        return self.in_file

    async def use_policy(self, policy: Policy) -> None:
        """Decide by these rules."""
        if self.faults:
            self.faults -= 1
            raise DatabaseUnavailableError("away")
        self.policy = policy
        self.taken_over += 1


class Baselines:
    """Learns by the rules it is told."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def use_policy(self, policy: Policy) -> None:
        """Learn by these rules."""
        self._rules.learning_by = policy


def follower(rules: Rules) -> Ticker:
    """Return a ticker that does not lead, with a policy file."""
    return Ticker(
        cast(Store, rules),
        cast(Publisher, None),
        cast(Leadership, Parts(leads=False)),
        cast(BaselineStore, Baselines(rules)),
        cast(DayStore, None),
        policy_file=cast(PolicyFile, rules),
    )


STRICT = parse_policy("[defaults.condition_a]\nmore_than = 1\n")


async def test_changed_rules_are_taken_over_once() -> None:
    """By every manager, whoever leads."""
    rules = Rules(STRICT)
    for _ in range(3):
        await follower(rules).follow_policy()
    assert rules.policy == rules.learning_by == STRICT
    assert rules.taken_over == 1


async def test_a_file_at_fault_changes_no_rules() -> None:
    """Those in force stay; where there is no file there is nothing to follow."""
    rules = Rules(None)
    await follower(rules).follow_policy()
    await ticker(Parts()).follow_policy()
    assert rules.policy == Policy()


async def test_rules_that_could_not_be_stored_are_tried_again() -> None:
    """No decision refers to rules that the database does not know."""
    rules = Rules(STRICT, faults=1)
    with pytest.raises(DatabaseUnavailableError):
        await follower(rules).follow_policy()
    assert rules.policy == rules.learning_by == Policy()
    await follower(rules).follow_policy()
    assert rules.learning_by == STRICT
