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
from gatemesh_agent.gates.refusal import is_nan_refusal
from gatemesh_agent.judging import Judging
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
        if self._router.second(now_s, accusation.life.instance_id) is None:
            self._expire(pending, "nobody_else")
            return
        self._pending.setdefault(key, []).append(pending)
        self._idle.clear()
        loop = asyncio.get_running_loop()
        wait_s = self._terms.wait_s if accusation.verdict.hard else self._terms.soft_wait_s
        pending.timers.append(loop.call_later(wait_s, self._expire, pending, "late"))
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
            self._expire(pending, "stopped")

    def _settle_known(self, pending: Pending, how: str) -> bool:
        ruling = self._docket.rule(pending.key, pending.accusation.charge(), time.monotonic())
        if ruling is Attribution.UNKNOWN:
            return False
        self._precedents.add(Precedent(pending.key, pending.kind, ruling, time.monotonic()))
        self._close(pending, ruling, how)
        return True

    def _expire(self, pending: Pending, how: str) -> None:
        ruling = self._precedents.rule(pending.kind, time.monotonic())
        self._close(pending, ruling, how if ruling is Attribution.UNKNOWN else "precedent")

    def _close(self, pending: Pending, ruling: Attribution, how: str) -> None:
        """Publish a withheld verdict, unless another one already says it."""
        for timer in pending.timers:
            timer.cancel()
        group = self._pending.get(pending.key, [])
        if pending in group:
            group.remove(pending)
        if not group:
            self._pending.pop(pending.key, None)
        if not self._pending:
            self._idle.set()
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

    def _try(self, pending: Pending) -> None:
        """Ask another instance, unless one is being asked the same already."""
        if pending.key in self._tries or pending.tried:
            return
        if self._budget.is_busy:
            self._queue.append(pending)
            return
        pending.tried = True
        life = pending.accusation.life
        now_s = time.monotonic()
        witness = self._router.second(now_s, life.instance_id)
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
        if not (accusation.retried or accusation.continued):
            self._expire(pending, why)

    async def _run(self, pending: Pending, witness: RoutedInstance, order: Order) -> None:
        outcome = "failed_itself"
        try:
            async with asyncio.timeout(self._terms.try_s):
                outcome = await self._ask(pending, witness, order)
        except (InstanceFailedError, InstanceSilentError, StreamBrokenError, TimeoutError):
            outcome = "no_answer"
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

    async def _ask(self, pending: Pending, witness: RoutedInstance, order: Order) -> str:
        """Return in a word how the other instance did."""
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
        told = self._judge(accusation, order, wish, status, body)
        if told is None:
            return f"status_{status}"
        self.hear(pending.key, life, told)
        return told.finding.name.lower()

    async def _exchange(self, witness: RoutedInstance, order: Order) -> tuple[int, bytes]:
        # Not counted as load: that would send the clients to the accused.
        async with self._upstream.ask(witness.base_url, order) as reply:
            body, complete = await reply.whole(await reply.first(), LARGEST_ANSWER_BYTES)
            return (reply.status, body) if complete else (0, b"")

    def _judge(
        self, accusation: Accusation, order: Order, wish: Wish, status: int, body: bytes
    ) -> Told | None:
        """Return what the other instance made of it; None when that tells nothing."""
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
        judge = self._judging.judged(asked, fields, wish.count, accusation.verdict)
        cut = judge.first.finish_reason == CUT_BY_LIMIT
        return Told(finding_of(judge.failures), judge.judged, bound if cut else WHOLE)


def copy_order(accusation: Accusation) -> Order | None:
    """Return what is sent for a second opinion; None when the request cannot be repeated."""
    request = accusation.request
    body = bounded_copy(request.asked, accusation.tokens)
    return None if body is None else replace(request.order, body=body)
