"""One open transaction: what it has locked, and what is decided in it."""

import asyncio
import logging
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from gatemesh_common.captures import Capture
from gatemesh_common.clock import Clock
from gatemesh_common.database import Answer, Query, together
from gatemesh_common.errors import DatabaseUnavailableError
from gatemesh_common.inbox import first_seen, seeing, unknown
from gatemesh_common.messages import (
    CommandReport,
    InstanceObserved,
    Message,
    ReportOutcome,
    RequestRejected,
    StepFinished,
    TelemetryWindow,
    Verdict,
)
from gatemesh_common.outbox import OutboxRow, Sign, enqueue
from gatemesh_health_manager import store_fleet, store_traffic, store_verdicts
from gatemesh_health_manager.announce import announcements
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.batch import decide_all
from gatemesh_health_manager.fleet import DEFAULT_POOL, Fleet
from gatemesh_health_manager.inputs import (
    InputKind,
    input_row,
    is_decided,
    is_weighty,
    message_body,
    seen_body,
    tick_one,
    ticks_body,
)
from gatemesh_health_manager.known_records import KnownRecords
from gatemesh_health_manager.measuring import Measures
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import Decision
from gatemesh_health_manager.states import IllegalTransitionError
from gatemesh_health_manager.storable import Row
from gatemesh_health_manager.store_captures import capture_row
from gatemesh_health_manager.store_homes import Homes
from gatemesh_health_manager.store_rows import (
    note_of,
    refused_row,
    rejected_row,
    report_row,
    request_row,
    step_row,
    telemetry_row,
    verdict_values,
)
from gatemesh_health_manager.store_tables import (
    CAPTURES,
    COMMAND_REPORTS,
    COMMAND_STEPS,
    DECISION_INPUTS,
    REFUSED_COMMANDS,
    REJECTED_REQUESTS,
    REQUESTS,
    TELEMETRY_WINDOWS,
)
from gatemesh_health_manager.trial import try_out

log = logging.getLogger(__name__)

APP_ID = "health_manager"
AT_ONCE = 25
"""Verdicts dealt with in one go: a millisecond or two during which nothing else is done."""
PLAIN_RECORDS: dict[type[Message], tuple[Any, Callable[[Any], Row]]] = {
    CommandReport: (COMMAND_REPORTS, report_row),
    StepFinished: (COMMAND_STEPS, step_row),
    RequestRejected: (REJECTED_REQUESTS, rejected_row),
    TelemetryWindow: (TELEMETRY_WINDOWS, telemetry_row),
    Capture: (CAPTURES, capture_row),
}
"""Messages that are written down as they are."""


class InstanceMovedError(DatabaseUnavailableError):
    """An instance changed its pool between looking and locking; the next try sees it."""


class Sending(NamedTuple):
    """How the messages about what is decided go out."""

    sign: Sign
    kept_for: timedelta
    """How long relays leave them to whoever wrote them."""


class Work:
    """One open transaction, the records it has locked, and the decisions taken in it."""

    def __init__(
        self,
        connection: AsyncConnection,
        policy: Policy,
        clock: Clock,
        sending: Sending,
        known: KnownRecords,
    ) -> None:
        self._connection = connection
        self._known = known
        self._sending = sending
        self._policy = policy
        self._clock = clock
        self._now = clock()
        """When the locks were had, once they are: the order of moments is that of deciding."""
        self.fleet = Fleet(policy, (), ())
        self.decisions: list[Decision] = []
        self.weighty: list[Decision] = []
        """Those of them that say more than how the record is now; known once it is finished."""
        self.due: Sequence[OutboxRow] = ()
        """What stands in the outbox and may be sent; known once it is finished."""
        self._verdicts: list[tuple[object, ...]] = []
        self._inputs: list[Row] = []

    async def unseen(self, queue: str, messages: Sequence[Any]) -> list[Any]:
        """Return the messages that were never handled, each id once, in their order."""
        ids = [message.message_id for message in messages]
        fresh = await first_seen(self._connection, queue, ids, self._now)
        return once(messages, fresh)

    async def take_in(
        self, queue: str, verdicts: Sequence[Verdict], homes: Homes
    ) -> Sequence[Verdict]:
        """Lock the pools of verdicts and return those never handled, as `unseen` and `load` do.

        In one exchange with the server: where instances are is remembered.
        """
        if not verdicts:
            return ()
        ids = [verdict.message_id for verdict in verdicts]
        said = {verdict.instance_id: verdict.pool for verdict in verdicts}
        known = await homes.of(self._connection, said)
        pools = {name: pool or known.get(name, DEFAULT_POOL) for name, pool in said.items()}
        seeing_them = seeing(queue, ids, self._now)
        [seen] = await self._lock({*pools.values(), *known.values()}, [seeing_them])
        homes.learn(self.fleet)
        moved = [name for name in known if name not in self.fleet.records]
        if moved:
            homes.forget(moved)
            raise InstanceMovedError(f"{moved[0]} changed its pool just now")
        fresh = once(verdicts, unknown(ids, seen))
        for verdict in fresh:
            self.fleet.register(verdict.instance_id, pools[verdict.instance_id], self._now)
        return fresh

    async def load(self, pools_by_instance: dict[str, str | None]) -> None:
        """Lock the pools of some instances; register instances never heard of."""
        names = sorted(pools_by_instance)
        known = await store_fleet.pools_of(self._connection, names)
        homes = {name: pools_by_instance[name] or known.get(name, DEFAULT_POOL) for name in names}
        await self._lock({*homes.values(), *known.values()})
        self._expect(known)
        for name, pool in homes.items():
            self.fleet.register(name, pool, self._now)

    async def load_known(self, names: set[str]) -> None:
        """Lock the pools of those of some instances that are known."""
        known = await store_fleet.pools_of(self._connection, names)
        await self._lock(set(known.values()))
        self._expect(known)

    async def load_pool(self, pool: str) -> None:
        """Lock one pool."""
        await self._lock({pool})

    async def _lock(self, pools: set[str], first: Sequence[Query] = ()) -> Sequence[Answer]:
        self.fleet, answers = await store_fleet.lock_pools(
            self._connection, self._policy, self._known, pools, first
        )
        self._now = self._clock()
        return answers

    def _expect(self, names: Collection[str]) -> None:
        for name in names:
            if name not in self.fleet.records:
                raise InstanceMovedError(f"{name} changed its pool just now")

    async def load_whole(self) -> None:
        """Lock every pool, and keep others from being made meanwhile."""
        await store_fleet.make_no_pools(self._connection)
        await self.load_all()

    async def load_all(self) -> None:
        """Lock every pool."""
        self.fleet = await store_fleet.lock_all(self._connection, self._policy, self._known)
        self._now = self._clock()

    async def judge(self, verdicts: Sequence[Verdict]) -> None:
        """Decide about each verdict, as if they had come one by one; they are stored with it."""
        if not verdicts:
            return
        copies, facts = await store_verdicts.look_back(
            self._connection, self._policy, self.fleet, verdicts, self._now
        )
        records = self.fleet.records
        # As the records are before: what is decided may begin another life.
        for some in chunks(verdicts):
            await asyncio.sleep(0)
            self._verdicts.extend(
                verdict_values(each, records[each.instance_id], self._now) for each in some
            )
        self.keep(InputKind.VERDICTS, {"count": len(verdicts)})
        for some in chunks(verdicts):
            self.decisions.extend(decide_all(self.fleet, some, facts, copies, self._now))
            await asyncio.sleep(0)

    async def store_records(self, messages: Sequence[Message]) -> None:
        """Insert messages that are written down as they are."""
        for kind, (table, row_of) in PLAIN_RECORDS.items():
            rows = [row_of(message) for message in messages if isinstance(message, kind)]
            await store_fleet.insert_rows(self._connection, table, rows)

    async def store_refusal(self, report: CommandReport) -> None:
        """Insert a refusal where people look for forgeries."""
        rows = [refused_row(report, self._now)]
        await store_fleet.insert_rows(self._connection, REFUSED_COMMANDS, rows)

    def is_no_copy(self, event: CommandReport | InstanceObserved) -> bool:
        """False for the refusal of a command that nobody waits for: it is the copy of another."""
        if not isinstance(event, CommandReport) or event.outcome is not ReportOutcome.REFUSED:
            return True
        flight = self.fleet.records[event.instance_id].flight
        return flight is not None and flight.command_id == event.command_id

    def decide(self, event: CommandReport | InstanceObserved) -> None:
        """Decide about one event and keep the outcome."""
        before = self.fleet.records[event.instance_id]
        decision = self.fleet.apply(event.instance_id, event, self._now)
        self.decisions.append(decision)
        is_new = event.instance_id not in self.fleet.stored
        if is_new or is_decided(before, decision.record):
            self.keep(InputKind.of(event), message_body(event))

    def keep(self, kind: InputKind, body: Row) -> None:
        """Remember an input of what is decided here, so that it can be decided again."""
        self._inputs.append(input_row(kind, body, self.fleet, self._policy.version, self._now))

    async def try_out(self, request: Asked) -> None:
        """Write down what a request would do."""
        await self._load_for(request)
        refusal, note = try_out(self.fleet, request, self._now)
        row = request_row(request, refusal, self._now, note) | {"dry_run": True}
        await store_fleet.insert_rows(self._connection, REQUESTS, [row])

    async def _load_for(self, request: Asked) -> None:
        if request.instance_id is None:
            await self.load_all()
        else:
            await self.load_known({request.instance_id})

    async def answer(self, request: Asked) -> None:
        """Follow or refuse a request, and write it down."""
        await self._load_for(request)
        self.keep(InputKind.REQUEST, message_body(request))
        refusal, decisions = self.fleet.answer(request, self._now)
        self.decisions.extend(decisions)
        row = request_row(request, refusal, self._now, note_of(request, decisions))
        await store_fleet.insert_rows(self._connection, REQUESTS, [row])

    @property
    def now(self) -> datetime:
        """When the locks were had."""
        return self._now

    async def measure(self) -> dict[str, Measures]:
        """Return what the conditions over telemetry go by."""
        return await store_traffic.measure(self._connection, self.fleet, self._now)

    async def tick(self, measures: Mapping[str, Measures]) -> None:
        """Let time pass for every instance that the executor knows."""
        requests = await store_fleet.requests_since_probe(self._connection, self.fleet, self._now)
        before = dict(self.fleet.records)
        for record in before.values():
            if record.observed:
                name = record.instance_id
                self._tick_one(name, requests.get(name, 0), measures.get(name, ()))
        body = ticks_body(before, self.fleet, requests, measures)
        if body:
            self.keep(InputKind.TICK, body)

    def _tick_one(self, instance_id: str, requests: int, measures: Measures) -> None:
        try:
            self.decisions.append(tick_one(self.fleet, instance_id, requests, self._now, measures))
        except IllegalTransitionError as error:
            # A fault in the rules about one instance must not stop time for all others.
            facts = {"instance_id": instance_id, "error": str(error)}
            log.error("tick_refused", extra=facts)  # noqa: TRY400 (the place is the rule's)

    async def finish(self) -> None:
        """Write down what was decided, and leave the messages about it in the outbox."""
        version = self._policy.version
        # Most verdicts change a score and no more: that stands in the records.
        weighty = self.weighty = [one for one in self.decisions if is_weighty(one)]
        messages = announcements(self.fleet, weighty, version, self._now)
        if len(self._verdicts) > store_verdicts.FEW:
            await store_verdicts.copy(self._connection, self._verdicts)
        async with together(self._connection):
            if len(self._verdicts) <= store_verdicts.FEW:
                await store_verdicts.insert(self._connection, self._verdicts)
            await store_fleet.save(self._connection, self.fleet, weighty, version, self._now)
            await self._save_inputs()
            self.due = await enqueue(
                self._connection,
                messages,
                APP_ID,
                self._now,
                self._sending.sign,
                kept_for=self._sending.kept_for,
            )

    async def _save_inputs(self) -> None:
        seen = seen_body(self.fleet) if self.weighty else {}
        rows = [row | {"seen": seen} for row in self._inputs]
        await store_fleet.insert_rows(self._connection, DECISION_INPUTS, rows)


def once(messages: Iterable[Any], ids: Collection[str]) -> list[Any]:
    """Return the messages of some ids, each id once, in their order."""
    by_id = {message.message_id: message for message in messages}
    return [message for name, message in by_id.items() if name in ids]


def chunks(verdicts: Sequence[Verdict]) -> Iterator[Sequence[Verdict]]:
    """Yield verdicts by so many as may be decided about before others get a turn."""
    for start in range(0, len(verdicts), AT_ONCE):
        yield verdicts[start : start + AT_ONCE]
