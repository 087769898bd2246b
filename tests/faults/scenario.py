"""A scenario as data, and one play of it: the fault strikes under traffic, then all is checked."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest
from tests.acceptance.fleet import until
from tests.faults.ledger import Ledger
from tests.faults.site import POLICY, Site
from tests.faults.traffic import Traffic

from gatemesh_common.broker import DEAD_LETTERS, WORK_QUEUES
from gatemesh_common.clock import utc_now
from gatemesh_common.publisher import Publisher

RECOVERY_S = 30.0
"""Longest time from the end of a fault to a fresh event in SQL and an answered request.

15 s are promised; a machine that is busy with other tests is given twice that, and the table tells
how long it took.
"""


@dataclass
class Play:
    """One scenario being played."""

    site: Site
    scenario: "Scenario"
    since: datetime
    ledger: Ledger
    traffic: Traffic
    facts: dict[str, Any] = field(default_factory=dict)
    """What the event leaves for the checks."""
    back_s: float | None = None
    """How long it took after the fault until events and answers flowed."""

    async def reach(self, true: Callable[[], bool], what: str, deadline_s: float = 60.0) -> None:
        """Wait until something is so."""
        await until(true, what, deadline_s)

    async def flows(self, events: int = 20, answers: int = 5) -> None:
        """Wait until so many more events are confirmed and requests answered."""
        noted, answered = len(self.ledger.confirmed), self.traffic.answered
        await self.reach(
            lambda: (
                len(self.ledger.confirmed) >= noted + events
                and self.traffic.answered >= answered + answers
            ),
            "events and answers flow",
        )

    async def is_cured(self) -> None:
        """The fault has ended: a fresh event must be in SQL and a request answered in time."""
        answered, ended = self.traffic.answered, time.monotonic()
        async with asyncio.timeout(RECOVERY_S):
            async with Publisher(self.site.plan.addresses.amqp_url, "ledger") as publisher:
                fresh = await self.ledger.note(publisher)
            await self.reach(
                lambda: (
                    fresh in self.ledger.applied(self.site.fleet)
                    and self.traffic.answered > answered
                ),
                "a fresh event in SQL and an answered request",
                RECOVERY_S,
            )
        self.back_s = time.monotonic() - ended

    def commands(self, instance: str | None = None) -> list[str]:
        """Return the commands since the beginning; putting back is none."""
        return self.site.fleet.commands(self.since, instance)

    def count(self, query: str, **parameters: Any) -> int:
        """Return the number that a query over the views gives; `since` is the beginning."""
        return self.site.fleet.count(query, since=self.since, **parameters)


Event = Callable[[Play], Awaitable[None]]
Check = Callable[[Play], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """One fault and the rule by which it is passed."""

    name: str
    rule: str
    """What must hold, as the table says it."""
    event: Event
    checks: tuple[Check, ...]
    in_every_run: bool = True
    """The others, longer or of less weight, are played by `./mesh test --faults` only."""
    rules: str = POLICY
    """The policy that is in force meanwhile."""
    dead_letters: int | None = 0
    """Messages that must end among the dead letters, None for any; they are read away."""
    needs: pytest.MarkDecorator | None = None
    """Skips it where a program is missing."""


async def play(scenario: Scenario, site: Site) -> Play:
    """Play a scenario from rest to rest, and check it."""
    await site.fleet.settled()
    await site.follow(scenario.rules)
    word = f"{scenario.name}-{utc_now():%H%M%S}"
    url = site.plan.addresses.amqp_url
    it = Play(
        site, scenario, utc_now(), Ledger(url, "engine-0", word), Traffic(site.plan.agent_url, word)
    )
    # What a failed scenario has left is not this one's.
    await take_dead_letters(it)
    await strike(it)
    await site.fleet.settled(150.0)
    await nothing_lost(it)
    for check in scenario.checks:
        await check(it)
    return it


async def strike(it: Play) -> None:
    """Let the event happen under steady traffic."""
    stopped = asyncio.Event()
    running = [asyncio.create_task(one.run(stopped)) for one in (it.ledger, it.traffic)]
    try:
        await it.flows()
        await it.scenario.event(it)
        await it.flows()
    finally:
        it.site.heal()
        stopped.set()
        await asyncio.gather(*running)


async def nothing_lost(it: Play) -> None:
    """Every confirmed event is applied once, every queue is empty, nothing waits to be sent."""
    fleet = it.site.fleet
    await it.reach(lambda: not it.ledger.missing(fleet), "every confirmed event in SQL")
    applied = it.ledger.applied(fleet)
    assert len(applied) == len(set(applied))
    outbox = "SELECT count(*) FROM outbox"
    await it.reach(lambda: fleet.count(outbox) == 0, "nothing left to send")
    async with asyncio.timeout(60):
        while await depths(it):  # noqa: ASYNC110 (a state of the broker)
            await asyncio.sleep(0.2)
    dead = await take_dead_letters(it)
    assert it.scenario.dead_letters in (dead, None)


async def depths(it: Play) -> dict[str, int]:
    """Return how many messages wait in each work queue that is not empty."""
    found = {}
    async with Publisher(it.site.fleet.plan.addresses.amqp_url, "depths") as publisher:
        channel = await publisher.channel()
        for queue in WORK_QUEUES:
            declared = await channel.declare_queue(queue.name, passive=True)
            if declared.declaration_result.message_count:
                found[queue.name] = declared.declaration_result.message_count
    return found


async def take_dead_letters(it: Play) -> int:
    """Read the dead letters away and return how many there were."""
    async with Publisher(it.site.fleet.plan.addresses.amqp_url, "dead letters") as publisher:
        channel = await publisher.channel()
        queue = await channel.declare_queue(DEAD_LETTERS, passive=True)
        taken = 0
        while await queue.get(fail=False, no_ack=True) is not None:
            taken += 1
    return taken
