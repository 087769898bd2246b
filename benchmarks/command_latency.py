"""How long a command takes from the publishing of the proof that calls for it, under load."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import ceil

import aio_pika
from aio_pika.abc import AbstractExchange, AbstractIncomingMessage
from aiormq.abc import ChannelFrame as Frames
from aiormq.channel import Channel
from benchmarks.bare_service import BareService, bare_service
from pamqp import commands
from pamqp.body import ContentBody
from pamqp.header import ContentHeader

from gatemesh_common.broker import COMMANDS
from gatemesh_common.clock import utc_now
from gatemesh_common.collecting import collect_rarely
from gatemesh_common.messages import CheckLevel, Outcome, Reason, Verdict
from gatemesh_common.publisher import envelope

POOLS = 20
"""Pools of the instances that are proven sick: a batch locks two, not all of them."""
PROOFS = 200
PROOF_EVERY_S = 0.1
TICK_S = 0.005
LONGEST_S = 30.0

POLICY = """
[defaults.ejection]
max_out_share = 1.0
min_in_rotation = 0

[defaults.fleet_brake]
enabled = false

[defaults.probes]
enabled = false
"""
"""Every proof may take its instance out, so that each of them is answered by a command."""


@dataclass(frozen=True)
class Latency:
    """From a proof's publishing to the arrival of its command, beside a load of other verdicts."""

    load_per_s: float
    sent_per_s: float
    """What was sent in fact."""
    commands: int
    p50_ms: float
    p99_ms: float
    worst_ms: float
    bare_p50_ms: float
    """The same of a service that reads, commits one row and answers, between the proofs."""
    bare_p99_ms: float


def targets() -> Iterator[tuple[str, str]]:
    """Yield the instances that will be proven sick, each with its pool."""
    for number in range(PROOFS):
        yield f"target-{number}", f"pool-{number % POOLS}"


def proof_of(instance_id: str, pool: str) -> Verdict:
    """Return a verdict that takes an instance out at once."""
    return Verdict(
        timestamp=utc_now(),
        instance_id=instance_id,
        pool=pool,
        request_id=f"request-{instance_id}",
        check_level=CheckLevel.L3,
        outcome=Outcome.FAILED,
        reason=Reason.NAN_LOGITS,
        hard=True,
        incarnation=1,
        prompt_fingerprint=f"prompt-{instance_id}",
    )


def written(message: aio_pika.Message, key: str, channel: Channel) -> bytes:
    """Return a message as it goes over the wire: agents do this elsewhere, on other cores."""
    sent = commands.Basic.Publish(exchange=Verdict.exchange, routing_key=key)
    header = ContentHeader(properties=message.properties, body_size=len(message.body))
    return Frames.marshall(channel.number, [sent, header, ContentBody(message.body)]).payload


class Race:
    """Publishes verdicts and proofs, each over a connection of its own, and hears commands."""

    def __init__(self, verdicts: AbstractExchange, loading: Channel, bare: BareService) -> None:
        self._verdicts = verdicts
        self._bare = bare
        self._loading = loading
        self._began: dict[str, float] = {}
        self.took_s: dict[str, float] = {}
        self.all_came = asyncio.Event()
        self.loaded = asyncio.Event()
        """Set once the other verdicts lie ready and begin to go."""
        self.sent = 0

    async def hear(self, message: AbstractIncomingMessage) -> None:
        """Note when the first command for an instance came."""
        name = json.loads(message.body)["instance_id"]
        self.took_s.setdefault(name, time.perf_counter() - self._began[name])
        if len(self.took_s) == PROOFS:
            self.all_came.set()

    async def load(self, others: Sequence[Verdict], per_s: float) -> None:
        """Publish evenly; what is late is made up for."""
        messages = [(envelope(verdict, "benchmark"), verdict.key()) for verdict in others]
        ready = [written(message, key, self._loading) for message, key in messages]
        collect_rarely()
        self.loaded.set()
        began = time.perf_counter()
        while self.sent < len(ready):
            due = min(len(ready), int((time.perf_counter() - began) * per_s))
            some = b"".join(ready[self.sent : due])
            await self._loading.write_queue.put(Frames(some, should_close=False))
            self.sent = due
            await asyncio.sleep(TICK_S)

    async def prove(self) -> None:
        """Publish a proof every while, and in between the same to the bare service."""
        for name, pool in targets():
            proof = envelope(verdict := proof_of(name, pool), "benchmark")
            self._began[name] = time.perf_counter()
            await self._verdicts.publish(proof, verdict.key())
            await asyncio.sleep(PROOF_EVERY_S / 2)
            await self._bare.ask(proof.body)
            await asyncio.sleep(PROOF_EVERY_S / 2)

    def bare(self) -> list[float]:
        """Return how many ms the bare service took, ascending."""
        return [1000 * took_s for took_s in sorted(self._bare.took_s.values())]


async def race(amqp_url: str, url: str, others: Sequence[Verdict], per_s: float) -> Latency:
    """Send others at a rate while instances are proven sick; a manager must be at work.

    The bare service keeps its rows in a table of its own in the manager's database.

    Raises:
        SystemExit: a command did not come.
    """
    async with running(amqp_url, url) as one:
        loading = asyncio.create_task(one.load(others, per_s))
        try:
            await one.loaded.wait()
            began = time.perf_counter()
            await one.prove()
            sent_per_s = one.sent / (time.perf_counter() - began)
            with suppress(TimeoutError):
                await asyncio.wait_for(one.all_came.wait(), LONGEST_S)
        finally:
            loading.cancel()
    if len(one.took_s) < PROOFS:
        raise SystemExit(f"only {len(one.took_s)} of {PROOFS} proofs were answered by a command")
    if len(one.bare()) < PROOFS:
        raise SystemExit(f"the bare service answered only {len(one.bare())} of {PROOFS} messages")
    ranked = [1000 * took_s for took_s in sorted(one.took_s.values())]
    return Latency(
        load_per_s=per_s,
        sent_per_s=sent_per_s,
        commands=len(ranked),
        p50_ms=quantile(ranked, 0.5),
        p99_ms=quantile(ranked, 0.99),
        worst_ms=ranked[-1],
        bare_p50_ms=quantile(one.bare(), 0.5),
        bare_p99_ms=quantile(one.bare(), 0.99),
    )


def quantile(ranked: Sequence[float], share: float) -> float:
    """Return the value that such a share of an ascending list does not exceed."""
    return ranked[max(0, ceil(len(ranked) * share) - 1)]


@asynccontextmanager
async def running(amqp_url: str, url: str) -> AsyncIterator[Race]:
    """Give a race whose ear is open."""
    async with (
        await aio_pika.connect(amqp_url) as connection,
        connection.channel(publisher_confirms=False) as channel,
        await aio_pika.connect(amqp_url) as other,
        other.channel(publisher_confirms=False) as loading,
        bare_service(amqp_url, url) as bare,
    ):
        verdicts = await channel.get_exchange(Verdict.exchange, ensure=False)
        below = await loading.get_underlay_channel()
        assert isinstance(below, Channel)
        one = Race(verdicts, below, bare)
        ear = await channel.declare_queue(exclusive=True)
        await ear.bind(COMMANDS.exchange, COMMANDS.routing_key)
        await ear.consume(one.hear, no_ack=True)
        yield one


def needed(per_s: float) -> int:
    """Return how many other verdicts are sent while the proofs are."""
    return int(per_s * PROOFS * PROOF_EVERY_S * 1.5)
