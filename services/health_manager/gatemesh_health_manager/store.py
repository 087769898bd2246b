"""The transaction around deciding: see once, lock, load, decide, write down, announce."""

import asyncio
import logging
from collections.abc import (
    AsyncIterator,
    Callable,
    Sequence,
)
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from gatemesh_common.clock import Clock
from gatemesh_common.database import transaction
from gatemesh_common.inbox import forget_before
from gatemesh_common.messages import (
    ActionRequest,
    CommandReport,
    InstanceObserved,
    Message,
    ReportOutcome,
    RoutingTable,
    TrialRequest,
    Verdict,
)
from gatemesh_common.outbox import HAND_OVER, OutboxRow, Sign, unsigned
from gatemesh_common.spans import NO_SPANS, Spans
from gatemesh_health_manager import store_fleet
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.fleet import Fleet
from gatemesh_health_manager.inputs import (
    InputKind,
    fleet_body,
    is_due,
)
from gatemesh_health_manager.known_records import KnownRecords
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.routing import routing_table
from gatemesh_health_manager.store_homes import Homes
from gatemesh_health_manager.store_traffic import MEASURE_EVERY, looked_at
from gatemesh_health_manager.store_work import Sending, Work
from gatemesh_health_manager.telling import (
    tell_brakes,
    tell_decisions,
    tell_fleet,
    tell_operators,
    tell_policy,
    tell_verdicts,
)
from gatemesh_health_manager.tracing import tell_spans

log = logging.getLogger(__name__)


def is_of_an_order(event: CommandReport | InstanceObserved) -> bool:
    """False for the report of a forgery or a copy, which may name whatever its sender liked."""
    return not isinstance(event, CommandReport) or event.ends_command


class Store:
    """Applies messages to the database: all that one transaction changes, or nothing.

    Every method raises `DatabaseUnavailableError` when nothing was changed and a later try can
    help, and `DataRefusedError` when the database refuses the data.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        policy: Policy,
        clock: Clock,
        hand_over: Callable[[Sequence[OutboxRow]], None] | None = None,
        sign: Sign = unsigned,
        *,
        spans: Spans = NO_SPANS,
    ) -> None:
        self._engine = engine
        self._spans = spans
        self._sign = sign
        self._policy = policy
        self._clock = clock
        self._hand_over = hand_over
        """Sends what a commit has left in the outbox; without it, that is up to the relays."""
        self._homes = Homes()
        self._known = KnownRecords()
        self._measured_at: datetime | None = None

    @property
    def policy(self) -> Policy:
        """The rules in force."""
        return self._policy

    async def register_policy(self) -> None:
        """Write down the rules that decisions from now on refer to."""
        tell_operators(self._policy.operators)
        await self.use_policy(self._policy)
        await self.remember_fleet()

    async def use_policy(self, policy: Policy) -> None:
        """Write rules down, and decide by them from the next transaction on."""
        async with transaction(self._engine) as connection:
            await store_fleet.save_policy(connection, policy, self._clock())
        if policy.operators != self._policy.operators:
            tell_operators(policy.operators)
        self._policy = policy
        tell_policy(policy.version)

    async def apply_verdicts(self, queue: str, verdicts: Sequence[Verdict]) -> None:
        """Store verdicts and decide about them, each once whatever is delivered again."""
        async with self._deciding() as work:
            fresh = await work.take_in(queue, verdicts, self._homes)
            await work.judge(fresh)
        tell_verdicts(fresh, self._clock())

    async def apply_records(self, queue: str, messages: Sequence[Message]) -> None:
        """Write down messages that nothing is decided about."""
        async with self._deciding() as work:
            await work.store_records(await work.unseen(queue, messages))

    async def apply_event(self, queue: str, event: CommandReport | InstanceObserved) -> None:
        """Decide about one report or observation."""
        async with self._deciding() as work:
            if not await work.unseen(queue, [event]):
                return
            if isinstance(event, CommandReport) and event.outcome is ReportOutcome.REFUSED:
                await work.store_refusal(event)
            if is_of_an_order(event):
                await work.load({event.instance_id: event.pool})
                if work.is_no_copy(event):
                    await work.store_records([event])
                work.decide(event)

    async def apply_request(
        self, queue: str, request: ActionRequest, user: str | None = None
    ) -> None:
        """Follow or refuse what a user asks for, and write down which; None: nobody is proven."""
        async with self._deciding() as work:
            if await work.unseen(queue, [request]):
                await work.answer(Asked.of(request, user))

    async def apply_trial(self, queue: str, request: TrialRequest, user: str | None = None) -> None:
        """Write down what a request would do, and do nothing."""
        async with self._deciding() as work:
            if await work.unseen(queue, [request]):
                await work.try_out(Asked.of(request, user))

    async def tick(self) -> None:
        """Let time pass for every instance; a pool in which nothing is due is not locked."""
        fleet, pools = await self._due()
        measuring = self._is_measuring(self._clock())
        if measuring:
            pools |= {serving[0].pool for _, serving in looked_at(fleet)}
        for pool in sorted(pools):
            async with self._deciding() as work:
                await work.load_pool(pool)
                await work.tick(await work.measure() if measuring else {})
            fleet.take_over(work.fleet)
        tell_fleet(fleet)

    async def _due(self) -> tuple[Fleet, set[str]]:
        """Return every pool as it is, and the names of those in which something is due."""
        async with transaction(self._engine) as connection:
            fleet = await store_fleet.read_all(connection, self._policy, self._known)
            now = self._clock()
            requests = await store_fleet.requests_since_probe(connection, fleet, now)
        self._homes.learn(fleet)
        due = set()
        for pool in fleet.pools:
            if is_due(fleet, pool, requests, now):
                due.add(pool)
            # Verdicts must not wait until the whole fleet is gone through.
            await asyncio.sleep(0)
        return fleet, due

    def _is_measuring(self, now: datetime) -> bool:
        last = self._measured_at
        if last is not None and timedelta() <= now - last < MEASURE_EVERY:
            return False
        self._measured_at = now
        return True

    async def remember_fleet(self) -> None:
        """Keep every record as it is now, so that decisions can be replayed from here on."""
        async with self._deciding() as work:
            await work.load_whole()
            work.keep(InputKind.FLEET, fleet_body(work.fleet))

    async def routing_tables(self) -> list[RoutingTable]:
        """Return the present table of every pool."""
        async with transaction(self._engine) as connection:
            fleet = await store_fleet.read_all(connection, self._policy, self._known)
        now = self._clock()
        return [
            routing_table(pool, version, fleet.members(pool), now)
            for pool, version in fleet.versions.items()
            if version > 0
        ]

    async def forget_history(self, older_than: timedelta) -> int:
        """Drop inputs of decisions and refused commands of long ago; return how many."""
        async with transaction(self._engine) as connection:
            return await store_fleet.forget_history(connection, self._clock() - older_than)

    async def forget_inbox(self, older_than: timedelta) -> int:
        """Delete ids of messages that cannot come again; return how many."""
        async with transaction(self._engine) as connection:
            return await forget_before(connection, self._clock() - older_than)

    @asynccontextmanager
    async def _deciding(self) -> AsyncIterator["Work"]:
        async with transaction(self._engine) as connection:
            kept_for = HAND_OVER if self._hand_over else timedelta()
            sending = Sending(self._sign, kept_for)
            work = Work(connection, self._policy, self._clock, sending, self._known)
            yield work
            await work.finish()
        if work.due and self._hand_over:
            self._hand_over(work.due)
        tell_decisions(work.weighty)
        tell_spans(self._spans, work.weighty, work.now, self._clock())
        tell_brakes(work.fleet)
