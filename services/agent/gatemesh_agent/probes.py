"""Probe tickets: run the suite on an instance once for each, and report how it went."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from random import Random
from typing import Protocol

from gatemesh_agent.calibration import (
    LEAST_VOTERS,
    RUNS_ALONE,
    RUNS_TOGETHER,
    Calibration,
    add_run,
)
from gatemesh_agent.calibration_store import CalibrationStore
from gatemesh_agent.metrics import PROBES
from gatemesh_agent.probe_asking import Pace
from gatemesh_agent.probe_brake import Brake
from gatemesh_agent.routing import PoolView
from gatemesh_agent.suite import Answer, Asking, Result, Suite, askings, conclude, quick_askings
from gatemesh_common.clock import Clock
from gatemesh_common.messages import (
    CheckLevel,
    Decoding,
    InstanceState,
    Message,
    Outcome,
    ProbeTicket,
    Reason,
    RoutedInstance,
    Verdict,
    new_message_id,
)

log = logging.getLogger(__name__)

REMEMBERED_TICKETS = 1000
PEERS = 2
"""Other instances asked to show what a model can do when it is first met."""
PEER_READY_S = 2.0
TRUSTED = (InstanceState.PROBATION, InstanceState.HEALTHY)

NOT_HEALTHY = Result(
    passed=False,
    judged=True,
    share=0.0,
    threshold=0.0,
    details={"passed": 0, "total": 0, "failed": ["health"], "faults": {"health": "no 200 in time"}},
)


class Asks(Protocol):
    """Sends probes to instances."""

    async def wait_ready(self, base_url: str, longest_s: float) -> str | None:
        """Return the model's name once the instance is up, None when it is not in time."""

    async def ask(self, instance_id: str, base_url: str, model: str, asking: Asking) -> Answer:
        """Return what came of one asking."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Where results go, and whose they are."""

    agent_id: str
    pool: str
    put: Callable[[Message], None]
    clock: Clock


@dataclass(frozen=True, slots=True)
class Run:
    """One ticket being worked off."""

    instance: RoutedInstance
    ticket: ProbeTicket
    model: str

    @property
    def is_urgent(self) -> bool:
        """True when an ejected instance waits for it: seconds count."""
        return self.ticket.purpose == "confirm"

    @property
    def voter(self) -> str:
        """The life that shows what it can do."""
        return voter_of(self.instance)


class Prober:
    """Follows the routing view and works off its tickets, each once."""

    def __init__(
        self, *, desk: Desk, suite: Suite, asker: Asks, store: CalibrationStore, pace: Pace
    ) -> None:
        self._desk = desk
        self._suite = suite
        self._asker = asker
        self._store = store
        self._pace = pace
        self._brake = Brake(pace.per_min)
        self._view = PoolView()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._done: dict[str, None] = {}

    def follow(self, view: PoolView) -> None:
        """Begin new tickets, and drop those that are no longer wanted."""
        self._view = view
        self._brake.forget_others({one.instance_id for one in view.instances})
        wanted = {one.probe.ticket_id: (one, one.probe) for one in view.instances if one.probe}
        for ticket_id in self._running.keys() - wanted.keys():
            self._running.pop(ticket_id).cancel()
        for ticket_id, (instance, ticket) in wanted.items():
            if ticket_id not in self._running and ticket_id not in self._done:
                self._running[ticket_id] = asyncio.create_task(self._work(instance, ticket))

    async def stop(self) -> None:
        """Drop every running ticket; another agent, or the next start, runs it."""
        running = list(self._running.values())
        self._running.clear()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _work(self, instance: RoutedInstance, ticket: ProbeTicket) -> None:
        extra = {
            "instance_id": instance.instance_id,
            "incarnation": instance.incarnation,
            "ticket_id": ticket.ticket_id,
            "purpose": ticket.purpose,
        }
        await self._wait_turn(instance.instance_id)
        log.info("probe_begun", extra=extra)
        begun_s = time.monotonic()
        try:
            result = await self._probe(instance, ticket)
        except Exception:
            # The ticket stays open: the next table, or another agent, brings it up again.
            log.exception("probe_failed_itself", extra=extra)
            self._running.pop(ticket.ticket_id, None)
            return
        self._finish(instance, ticket, result, time.monotonic() - begun_s)
        log.info(
            "probe_ended", extra={**extra, **result.details, "outcome": conclusion_of(result)[0]}
        )
        if not result.judged:
            log.error("probe_not_judged", extra={**extra, "cure": cure_of(result)})

    async def _wait_turn(self, instance_id: str) -> None:
        wait_s = self._brake.wait_s(instance_id, time.monotonic())
        while wait_s:
            await asyncio.sleep(wait_s)
            wait_s = self._brake.wait_s(instance_id, time.monotonic())

    def _finish(
        self, instance: RoutedInstance, ticket: ProbeTicket, result: Result, took_s: float
    ) -> None:
        outcome, _ = conclusion_of(result)
        PROBES.labels(purpose=ticket.purpose, outcome=outcome).inc()
        self._done[ticket.ticket_id] = None
        while len(self._done) > REMEMBERED_TICKETS:
            self._done.pop(next(iter(self._done)))
        self._running.pop(ticket.ticket_id, None)
        self._desk.put(self._verdict(instance, ticket, result, took_s))

    def _verdict(
        self, instance: RoutedInstance, ticket: ProbeTicket, result: Result, took_s: float
    ) -> Verdict:
        outcome, reason = conclusion_of(result)
        return Verdict(
            message_id=new_message_id(),
            timestamp=self._desk.clock(),
            instance_id=instance.instance_id,
            pool=self._desk.pool,
            incarnation=instance.incarnation,
            model_version=instance.model_version,
            request_id=ticket.ticket_id,
            check_level=CheckLevel.L5,
            type="probe",
            outcome=outcome,
            reason=reason,
            score=result.share,
            threshold=result.threshold,
            gate_version=self._suite.version,
            decoding=Decoding.GREEDY,
            details={
                "agent_id": self._desk.agent_id,
                "ticket_id": ticket.ticket_id,
                "purpose": ticket.purpose,
                "suite_version": self._suite.version,
                "took_s": round(took_s, 3),
                **result.details,
            },
        )

    async def _probe(self, instance: RoutedInstance, ticket: ProbeTicket) -> Result:
        model = await self._asker.wait_ready(instance.base_url, self._pace.health_s)
        if model is None:
            return NOT_HEALTHY
        rule = self._suite.rule_for(model)
        run = Run(instance, ticket, model)
        if rule.calibrated:
            return await self._probe_calibrated(run)
        answers = await self._ask_all(run, rule.left_out, quick=run.is_urgent)
        return conclude(self._suite, model, answers, rule.left_out)

    async def _probe_calibrated(self, run: Run) -> Result:
        """Judge by what healthy instances of the same model version can answer."""
        book = self._book(run)
        known = book.is_shown and (run.is_urgent or not book.needs(run.voter))
        left_out = book.dropped(self._suite) if known else ()
        answers = await self._ask_all(run, left_out, quick=run.is_urgent)
        if run.instance.state in TRUSTED and book.needs(run.voter) and not run.is_urgent:
            book = add_run(book, run.voter, answers)
        if not book.is_shown and not run.is_urgent:
            book = await self._calibrate(run, book)
        self._keep(run, book)
        result = conclude(self._suite, run.model, answers, book.dropped(self._suite))
        if result.details["faults"] or (book.is_shown and book.is_enough(self._suite)):
            return result
        why = "too_few_prompts" if book.is_shown else "not_calibrated"
        return Result(
            passed=False,
            judged=False,
            share=result.share,
            threshold=result.threshold,
            details={**result.details, "why": why},
        )

    async def _calibrate(self, run: Run, book: Calibration) -> Calibration:
        """Have other healthy instances show what they can; alone, the instance shows it again."""
        for peer in self._peers(run.instance):
            if await self._asker.wait_ready(peer.base_url, PEER_READY_S) != run.model:
                continue
            for _ in range(RUNS_TOGETHER):
                answers = await self._ask_all(Run(peer, run.ticket, run.model), ())
                book = add_run(book, voter_of(peer), answers)
        alone = len(book.voters) < LEAST_VOTERS and run.voter in book.voters
        for _ in range(RUNS_ALONE - book.runs if alone else 0):
            book = add_run(book, run.voter, await self._ask_all(run, ()))
        return book

    def _peers(self, instance: RoutedInstance) -> list[RoutedInstance]:
        able = [
            one
            for one in self._view.instances
            if one.instance_id != instance.instance_id
            and one.model_version == instance.model_version
            and one.state in TRUSTED
        ]
        return able[:PEERS]

    def _book(self, run: Run) -> Calibration:
        return self._store.find(*self._key(run))

    def _keep(self, run: Run, book: Calibration) -> None:
        if book == self._book(run):
            return
        self._store.keep(book, *self._key(run))
        if book.is_shown:
            log.info(
                "suite_calibrated",
                extra={
                    "model": run.model[:200],
                    "model_version": run.instance.model_version,
                    "suite_version": self._suite.version,
                    "voters": len(book.voters),
                    "dropped": book.dropped(self._suite),
                },
            )

    def _key(self, run: Run) -> tuple[str, str, str]:
        return (run.model, run.instance.model_version, self._suite.version)

    async def _ask_all(
        self, run: Run, left_out: Collection[str], *, quick: bool = False
    ) -> tuple[Answer, ...]:
        gate = asyncio.Semaphore(self._pace.parallel)
        instance = run.instance

        async def ask(asking: Asking) -> Answer:
            async with gate:
                return await self._asker.ask(
                    instance.instance_id, instance.base_url, run.model, asking
                )

        rng = Random(run.ticket.ticket_id)  # noqa: S311
        planned = (quick_askings if quick else askings)(self._suite, left_out, rng)
        return tuple(await asyncio.gather(*(ask(asking) for asking in planned)))


def voter_of(instance: RoutedInstance) -> str:
    """Return the name of an instance's present life."""
    return f"{instance.instance_id}/{instance.incarnation}"


def conclusion_of(result: Result) -> tuple[Outcome, Reason]:
    """Word a result; a suite that could not judge says so and never passes."""
    if not result.judged:
        warming = result.details.get("why") == "not_calibrated"
        return Outcome.SKIPPED, Reason.WARMING if warming else Reason.PROBES_REFUSED
    if result.passed:
        return Outcome.PASSED, Reason.CLEAN
    return Outcome.FAILED, Reason.PROBES_FAILED


def cure_of(result: Result) -> str:
    """Say what an operator can do about a suite that judges nothing."""
    if result.details.get("why"):
        return "add a rule for this model to the suite, or prompts that it can answer"
    if result.details.get("busy"):
        return "the engine had no room for probes; give it more, or probe less often"
    return "set GATEMESH_AGENT_PROBE_API_KEY, or a suite that these engines take"
