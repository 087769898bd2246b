"""How long a command takes from the publishing of the proof that calls for it, under load."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import aio_pika
from aio_pika.abc import AbstractExchange, AbstractIncomingMessage

from gatemesh_common.broker import COMMANDS
from gatemesh_common.clock import utc_now
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


class Race:
    """Publishes verdicts and proofs, and hears commands."""

    def __init__(self, verdicts: AbstractExchange) -> None:
        self._verdicts = verdicts
        self._began: dict[str, float] = {}
        self.took_s: dict[str, float] = {}
        self.all_came = asyncio.Event()
        self.sent = 0

    async def hear(self, message: AbstractIncomingMessage) -> None:
        """Note when the first command for an instance came."""
        name = json.loads(message.body)["instance_id"]
        self.took_s.setdefault(name, time.perf_counter() - self._began[name])
        if len(self.took_s) == PROOFS:
            self.all_came.set()

    async def load(self, messages: Sequence[tuple[aio_pika.Message, str]], per_s: float) -> None:
        """Publish evenly; what is late is made up for."""
        began = time.perf_counter()
        while self.sent < len(messages):
            due = min(len(messages), int((time.perf_counter() - began) * per_s))
            for message, key in messages[self.sent : due]:
                await self._verdicts.publish(message, key, mandatory=False)
            self.sent = due
            await asyncio.sleep(TICK_S)

    async def prove(self) -> None:
        """Publish a proof every while."""
        for name, pool in targets():
            proof = proof_of(name, pool)
            self._began[name] = time.perf_counter()
            await self._verdicts.publish(envelope(proof, "benchmark"), proof.key())
            await asyncio.sleep(PROOF_EVERY_S)


async def race(amqp_url: str, others: Sequence[Verdict], per_s: float) -> Latency:
    """Send others at a rate while instances are proven sick; a manager must be at work.

    Raises:
        SystemExit: a command did not come.
    """
    messages = [(envelope(verdict, "benchmark"), verdict.key()) for verdict in others]
    async with running(amqp_url) as one:
        loading, began = asyncio.create_task(one.load(messages, per_s)), time.perf_counter()
        try:
            await one.prove()
            sent_per_s = one.sent / (time.perf_counter() - began)
            with suppress(TimeoutError):
                await asyncio.wait_for(one.all_came.wait(), LONGEST_S)
        finally:
            loading.cancel()
    if len(one.took_s) < PROOFS:
        raise SystemExit(f"only {len(one.took_s)} of {PROOFS} proofs were answered by a command")
    ranked = [1000 * took_s for took_s in sorted(one.took_s.values())]
    return Latency(
        load_per_s=per_s,
        sent_per_s=sent_per_s,
        commands=len(ranked),
        p50_ms=ranked[len(ranked) // 2],
        p99_ms=ranked[int(len(ranked) * 0.99) - 1],
        worst_ms=ranked[-1],
    )


@asynccontextmanager
async def running(amqp_url: str) -> AsyncIterator[Race]:
    """Give a race whose ear is open."""
    async with (
        await aio_pika.connect(amqp_url) as connection,
        connection.channel(publisher_confirms=False) as channel,
    ):
        one = Race(await channel.get_exchange(Verdict.exchange, ensure=False))
        ear = await channel.declare_queue(exclusive=True)
        await ear.bind(COMMANDS.exchange, COMMANDS.routing_key)
        await ear.consume(one.hear, no_ack=True)
        yield one


def needed(per_s: float) -> int:
    """Return how many other verdicts are sent while the proofs are."""
    return int(per_s * PROOFS * PROOF_EVERY_S * 1.5)
