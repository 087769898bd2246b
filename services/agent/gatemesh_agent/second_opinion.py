"""Second opinions: a failing request is asked once more elsewhere, off the client's path."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gatemesh_agent.attribution import (
    WHOLE,
    Accusation,
    Docket,
    Finding,
    Kind,
    Precedent,
    Precedents,
    Told,
    TryBudget,
    Witness,
    bounded_copy,
    bounded_length,
    finding_of,
    request_key,
)
from gatemesh_agent.errors import InstanceFailedError, InstanceSilentError, StreamBrokenError
from gatemesh_agent.gates.drift import WitnessDrift
from gatemesh_agent.gates.refusal import is_nan_refusal
from gatemesh_agent.judging import Judging
from gatemesh_agent.jury import Jury, Suspicion, suspicion_of
from gatemesh_agent.measured import lean_of
from gatemesh_agent.metrics import ATTRIBUTED, ATTRIBUTION_SECONDS, SECOND_TRIES
from gatemesh_agent.reporting import Life
from gatemesh_agent.requests import understand
from gatemesh_agent.routing import Router
from gatemesh_agent.stripping import as_object, loads
from gatemesh_agent.upstream import Order, Upstream
from gatemesh_agent.wishes import Wish, Wishes
from gatemesh_common.gates import CUT_BY_LIMIT
from gatemesh_common.messages import Attribution, CheckLevel, RoutedInstance, Verdict

log = logging.getLogger(__name__)

OK = 200
BAD_REQUEST = 400
LARGEST_ANSWER_BYTES = 8 * 2**20
MOST_QUEUED = 1000
HEAD_START_S = 0.3
"""Time that the client's own retry gets before somebody else is asked, too."""
WITNESSES = 2
"""Asked in turn where the first one does not answer."""
DRIFT_WAIT_S = 60.0
"""How long a drift is withheld until enough others were compared; conditions look back as far."""
MOST_WITHHELD = 32
"""Drifts withheld of one suspicion; as many as anybody counts before acting."""
CONTINUED_START_S = 3.0
"""The same for an answer that goes on elsewhere: it is a second opinion after a few tokens."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a verdict is withheld, and what second tries may cost."""

    wait_s: float = 1.5
    soft_wait_s: float = 10.0
    try_s: float = 30.0
    at_once: int = 4
    per_minute: int = 60

    @property
    def may_try(self) -> bool:
        """False where second tries are turned off."""
        return self.at_once > 0 and self.per_minute > 0


@dataclass(eq=False, slots=True)
class Pending:
    """One verdict that is withheld until it is known whose fault it is."""

    accusation: Accusation
    key: str
    begun_s: float
    timers: list[asyncio.TimerHandle] = field(default_factory=list)
    tried: bool = False

    @property
    def kind(self) -> Kind:
        """What other failures are compared with it."""
        charge = self.accusation.charge()
        return Kind(self.accusation.life, charge.level, charge.bad)

    @property
    def suspicion(self) -> Suspicion | None:
        """What it says of the whole life; None for what the answer itself shows."""
        return suspicion_of(self.accusation.verdict, self.accusation.life)


class SecondOpinions:
    """Withholds verdicts until another instance has told, but never for long."""

    def __init__(
        self,
        *,
        router: Router,
        upstream: Upstream,
        judging: Judging,
        wishes: Wishes,
        publish: Callable[[Verdict], None],
        terms: Terms,
    ) -> None:
        self._router = router
        self._upstream = upstream
        self._judging = judging
        self._wishes = wishes
        self._publish = publish
        self._terms = terms
        self._budget = TryBudget(terms.at_once, terms.per_minute)
        self._docket = Docket()
        self._precedents = Precedents()
        self._jury = Jury()
        self._pending: dict[str, list[Pending]] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._tries: dict[str, asyncio.Task[None]] = {}
        self._queue: deque[Pending] = deque(maxlen=MOST_QUEUED)
        """Those for which there was no room yet; in time there may be."""

    def accuse(self, accusation: Accusation) -> None:
        """Take in a failure; its verdict goes out as soon as it is known whose fault it is."""
        request, now_s = accusation.request, time.monotonic()
        key = request_key(request.asked, request.order.path)
        charge = accusation.charge()
        self.hear(key, accusation.life, Told(charge.bad, frozenset({charge.level}), charge.tokens))
        pending = Pending(accusation, key, now_s)
        if self._settle_known(pending, "known"):
            return
        if self._router.second(now_s, {accusation.life.instance_id}) is None:
            self._expire(pending, "nobody_else")
            return
        if pending.suspicion is not None and not self._terms.may_try:
            self._expire(pending, "no_budget")
            return
        if len(self._withheld(pending.suspicion)) >= MOST_WITHHELD:
            self._drop(pending)
            return
        self._pending.setdefault(key, []).append(pending)
        self._idle.clear()
        loop = asyncio.get_running_loop()
        wait_s = self._terms.wait_s if accusation.verdict.hard else self._terms.soft_wait_s
        wait_s = wait_s if pending.suspicion is None else DRIFT_WAIT_S
        pending.timers.append(loop.call_later(wait_s, self._end, pending, "late"))
        if accusation.retried or accusation.continued:
            start_s = CONTINUED_START_S if accusation.continued else HEAD_START_S
            pending.timers.append(loop.call_later(start_s, self._try, pending))
        else:
            self._try(pending)

    def hear(self, key: str, life: Life, told: Told) -> None:
        """Take in what an instance made of a request that failed somewhere."""
        self._docket.hear(key, Witness(life.instance_id, told, time.monotonic()))
        for pending in list(self._pending.get(key, ())):
            self._settle_known(pending, "heard")

    def ask(self, key: str) -> None:
        """Ask somebody now: the client's own answer is not continued after all."""
        for pending in list(self._pending.get(key, ())):
            self._try(pending)

    async def settle(self) -> None:
        """Return when no verdict is withheld any more."""
        await self._idle.wait()

    async def stop(self) -> None:
        """Let every withheld verdict go as it is, and drop what is being tried."""
        tries = list(self._tries.values())
        for task in tries:
            task.cancel()
        await asyncio.gather(*tries, return_exceptions=True)
        for pending in [each for group in list(self._pending.values()) for each in group]:
            self._end(pending, "stopped")

    def _withheld(self, suspicion: Suspicion | None) -> list[Pending]:
        """Return the drifts of one suspicion that are withheld; of no suspicion none."""
        if suspicion is None:
            return []
        pending = [each for group in self._pending.values() for each in group]
        return [each for each in pending if each.suspicion == suspicion]

    def _settle_known(self, pending: Pending, how: str) -> bool:
        suspicion, now_s = pending.suspicion, time.monotonic()
        if suspicion is not None:
            # One answer of another instance is no evidence of what many answers are accused of.
            ruling = self._jury.rule(suspicion, now_s)
        else:
            ruling = self._docket.rule(pending.key, pending.accusation.charge(), now_s)
        if ruling is Attribution.UNKNOWN:
            return False
        if suspicion is None:
            self._precedents.add(Precedent(pending.key, pending.kind, ruling, now_s))
        self._close(pending, ruling, how)
        return True

    def _end(self, pending: Pending, how: str) -> None:
        """The wait is over; a drift that nobody has confirmed is none."""
        if pending.suspicion is None:
            self._expire(pending, how)
        else:
            self._drop(pending)

    def _drop(self, pending: Pending) -> None:
        ATTRIBUTED.labels(attribution=Attribution.UNKNOWN, how="undecided").inc()
        self._forget(pending)

    def _expire(self, pending: Pending, how: str) -> None:
        ruling = self._precedents.rule(pending.kind, time.monotonic())
        self._close(pending, ruling, how if ruling is Attribution.UNKNOWN else "precedent")

    def _close(self, pending: Pending, ruling: Attribution, how: str) -> None:
        """Publish a withheld verdict, unless another one already says it."""
        self._forget(pending)
        accusation, took_s = pending.accusation, time.monotonic() - pending.begun_s
        ATTRIBUTED.labels(attribution=ruling, how=how).inc()
        ATTRIBUTION_SECONDS.observe(took_s)
        if accusation.follows and ruling is Attribution.REQUEST:
            return
        if accusation.only_if_instance and ruling is not Attribution.INSTANCE:
            return
        told = {"attributed_by": how, "attributed_after_s": round(took_s, 3)}
        verdict = accusation.verdict
        details = {**verdict.details, **told}
        self._publish(verdict.model_copy(update={"attribution": ruling, "details": details}))

    def _forget(self, pending: Pending) -> None:
        for timer in pending.timers:
            timer.cancel()
        group = self._pending.get(pending.key, [])
        if pending in group:
            group.remove(pending)
        if not group:
            self._pending.pop(pending.key, None)
        if not self._pending:
            self._idle.set()

    def _try(self, pending: Pending) -> None:
        """Ask another instance, unless one is being asked the same already."""
        if pending.key in self._tries or pending.tried:
            return
        if self._budget.is_busy:
            self._queue.append(pending)
            return
        pending.tried = True
        now_s = time.monotonic()
        witness = self._router.second(now_s, {pending.accusation.life.instance_id})
        order = copy_order(pending.accusation)
        if witness is None or order is None:
            self._give_up(pending, "nobody_else" if witness is None else "not_repeatable")
        elif not self._budget.take(now_s):
            self._give_up(pending, "no_budget")
        else:
            task = asyncio.create_task(self._run(pending, witness, order))
            self._tries[pending.key] = task

    def _give_up(self, pending: Pending, why: str) -> None:
        """Nobody is asked off the path; the client's own retry may still tell."""
        SECOND_TRIES.labels(outcome=why).inc()
        accusation = pending.accusation
        # Others may still tell of a drift, and the client's own retry of anything else.
        if pending.suspicion is None and not (accusation.retried or accusation.continued):
            self._expire(pending, why)

    async def _run(self, pending: Pending, witness: RoutedInstance, order: Order) -> None:
        outcome = "failed_itself"
        asked = {pending.accusation.life.instance_id}
        one: RoutedInstance | None = witness
        try:
            while one is not None and len(asked) <= WITNESSES:
                asked.add(one.instance_id)
                told, outcome = await self._ask_one(pending, one, order)
                one = None if told else self._router.second(time.monotonic(), asked)
        except Exception:
            log.exception("second_opinion_failed_itself")
        finally:
            self._budget.give_back()
            self._tries.pop(pending.key, None)
            SECOND_TRIES.labels(outcome=outcome).inc()
        for left in list(self._pending.get(pending.key, ())):
            if left.tried:
                self._give_up(left, outcome)
            else:
                self._try(left)
        self._go_on()

    def _go_on(self) -> None:
        """Begin the tries for which there is room now."""
        while self._queue and not self._budget.is_busy:
            queued = self._queue.popleft()
            if queued in self._pending.get(queued.key, ()):
                self._try(queued)

    async def _ask_one(
        self, pending: Pending, witness: RoutedInstance, order: Order
    ) -> tuple[bool, str]:
        """Return whether an instance told anything, and in a word how it did."""
        try:
            async with asyncio.timeout(self._terms.try_s):
                return await self._ask(pending, witness, order)
        except (InstanceFailedError, InstanceSilentError, StreamBrokenError, TimeoutError):
            return False, "no_answer"

    async def _ask(
        self, pending: Pending, witness: RoutedInstance, order: Order
    ) -> tuple[bool, str]:
        accusation = pending.accusation
        life = Life.of(witness, self._router.view.version)
        asked = understand(accusation.request.asked.route, order.body)
        wish = self._wishes.of(asked, life)
        status, body = await self._exchange(witness, replace(order, body=wish.body(asked)))
        lesser = self._wishes.lessened(wish, life, body) if status == BAD_REQUEST else None
        while lesser is not None and not is_nan_refusal(status, body):
            wish = lesser
            status, body = await self._exchange(witness, replace(order, body=wish.body(asked)))
            lesser = self._wishes.lessened(wish, life, body) if status == BAD_REQUEST else None
        noted = lean_of(accusation.verdict)
        told = self._judge(accusation, order, wish, (status, body), noted)
        if told is None:
            return False, f"status_{status}"
        if noted is not None:
            self._hear_pair(pending, noted)
        self.hear(pending.key, life, told)
        return True, told.finding.name.lower()

    def _hear_pair(self, pending: Pending, noted: WitnessDrift) -> None:
        """Compare two answers to one prompt; what is withheld of the suspicion may be settled."""
        suspicion = pending.suspicion
        if suspicion is None:
            return
        self._jury.hear(suspicion, pending.accusation.verdict.details, noted, time.monotonic())
        for each in self._withheld(suspicion):
            self._settle_known(each, "pairs")

    async def _exchange(self, witness: RoutedInstance, order: Order) -> tuple[int, bytes]:
        # Not counted as load: that would send the clients to the accused.
        async with self._upstream.ask(witness.base_url, order) as reply:
            body, complete = await reply.whole(await reply.first(), LARGEST_ANSWER_BYTES)
            return (reply.status, body) if complete else (0, b"")

    def _judge(
        self,
        accusation: Accusation,
        order: Order,
        wish: Wish,
        answer: tuple[int, bytes],
        noted: WitnessDrift | None,
    ) -> Told | None:
        """Return what the other instance made of it; None when that tells nothing."""
        status, body = answer
        bound = bounded_length(accusation.request.asked.body or {}, accusation.tokens)
        if status == BAD_REQUEST and is_nan_refusal(status, body):
            return Told(Finding.HARD, frozenset({CheckLevel.L3}), bound)
        if status == BAD_REQUEST and accusation.only_if_instance:
            return Told(Finding.SOFT, frozenset())
        if status != OK:
            return None
        try:
            fields = as_object(loads(body))
        except ValueError:
            return None
        asked = understand(accusation.request.asked.route, order.body)
        judge = self._judging.judged(asked, fields, wish.count, accusation.verdict, noted)
        cut = judge.first.finish_reason == CUT_BY_LIMIT
        return Told(finding_of(judge.failures), judge.judged, bound if cut else WHOLE)


def copy_order(accusation: Accusation) -> Order | None:
    """Return what is sent for a second opinion; None when the request cannot be repeated."""
    request = accusation.request
    body = bounded_copy(request.asked, accusation.tokens)
    return None if body is None else replace(request.order, body=body)
