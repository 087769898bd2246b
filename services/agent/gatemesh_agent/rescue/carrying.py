"""Carries streams on elsewhere when an instance fails them, within the pool's terms."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from gatemesh_agent.begun import settle_failures
from gatemesh_agent.cases import Attempt, Case
from gatemesh_agent.engine_errors import INTERNAL_ERROR, opens_with_error
from gatemesh_agent.errors import (
    InstanceFailedError,
    InstanceSilentError,
    StreamBrokenError,
    WishRefusedError,
)
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.metrics import CONTINUATIONS, RESCUES, RESCUES_REFUSED
from gatemesh_agent.reporting import Life, Reporter
from gatemesh_agent.requests import Asked
from gatemesh_agent.rescue.asking import Asking
from gatemesh_agent.rescue.budget import RescueBudget
from gatemesh_agent.rescue.continuing import Continuation
from gatemesh_agent.rescue.counting import Counting
from gatemesh_agent.rescue.kept import Kept
from gatemesh_agent.rescue.leaving import Leaving
from gatemesh_agent.rescue.leg import ENDS
from gatemesh_agent.rescue.refusals import Refusal, refusal_of
from gatemesh_agent.rescue.running import Runner
from gatemesh_agent.rescue.splicing import Head, Splice, Swallow
from gatemesh_agent.rescue.story import Cause, Fault, Story, StreamFaultError
from gatemesh_agent.rescue.terms import RescueTerms
from gatemesh_agent.rescue.wording import ending, marker, refused
from gatemesh_agent.routing import Router
from gatemesh_agent.sse import DONE
from gatemesh_agent.under_way import under_way
from gatemesh_agent.upstream import Reply, Upstream
from gatemesh_agent.watchdog import Watch
from gatemesh_agent.wishes import Wishes
from gatemesh_common.messages import RoutedInstance

log = logging.getLogger(__name__)

OK = 200
BAD_GATEWAY = 502
LARGEST_REFUSAL_BYTES = 2**20
MOST_DEATHS = 2
"""Engines that may die under one request: the second death may be its doing."""
NOBODYS_FAULT = frozenset({Refusal.BUDGET, Refusal.TENANT_BUDGET, Refusal.NO_INSTANCE})
"""Refusals for which an answer passes that is not proven bad."""


@dataclass(frozen=True, slots=True)
class Rest:
    """How the rest of an answer is asked for."""

    continuation: Continuation
    path: str
    by: str


class Rescuer:
    """Watches streams, and has another instance go on with those that one does not end."""

    def __init__(
        self,
        *,
        router: Router,
        upstream: Upstream,
        wishes: Wishes,
        reporter: Reporter,
        watch: Watch,
        runner: Runner,
        leaving: Leaving,
        terms: RescueTerms,
        reroutes: int,
        unheard: Callable[[str], None],
        budget: RescueBudget,
    ) -> None:
        self._router = router
        self._upstream = upstream
        self._wishes = wishes
        self._reporter = reporter
        self._watch = watch
        self._runner = runner
        self.leaving = leaving
        """Watches those who wait for a first byte."""
        self._terms = terms
        self._reroutes = reroutes
        self._unheard = unheard
        """Told of a failing request that no other instance is asked for its client."""
        self._budget = budget
        self._asking = Asking(upstream)
        self.counting = Counting(self._asking)
        """Counts anew what whole answers show."""
        runner.decide = self._decide
        runner.may_move = lambda story: self._refusal(story) is None

    def open(self, case: Case) -> Story:
        """Return the story of a stream that begins."""
        shape = refusal_of(case.request.asked, takes_media=self._terms.takes_media)
        return Story(case, shape)

    async def run(self, story: Story, attempt: Attempt, reply: Reply, first: bytes) -> None:
        """Forward the first instance's part of a stream.

        Raises:
            StreamFaultError: it is to be carried on.
            ClientGoneError: the client left.
        """
        await self._runner.run(story, attempt, reply, first)

    async def carry_on(self, story: Story, fault: Fault) -> None:
        """Have others go on until the answer is whole, or end it with an error that says why.

        Raises:
            ClientGoneError: the client left.
        """
        while True:
            story.faults.append(fault)
            refusal = fault.refusal
            if refusal is None:
                refusal = story.why_not() if fault.is_decided else self._refusal(story)
            if refusal is None:
                try:
                    refusal = await self._elsewhere(story, fault)
                except StreamFaultError as again:
                    RESCUES.labels(cause=fault.cause, outcome="failed_again").inc()
                    fault = again.fault
                    continue
            outcome = "passed" if has_end(story) else "refused"
            outcome = "continued" if refusal is None else outcome
            RESCUES.labels(cause=fault.cause, outcome=outcome).inc()
            if refusal is not None:
                await self._refuse(story, fault, refusal)
            return

    def _decide(self, story: Story, instance_id: str, failure: Judgement) -> Fault | None:
        """Decide what becomes of an answer that a gate failed.

        What is not proven bad passes where two instances were objected to, since then the request
        is at fault, and where nobody else may be asked; an end that looks torn wherever it cannot
        be gone on from.
        """
        doubted = [each.failure for each in story.faults if each.failure is not None]
        if doubted and not any(each.hard for each in (*doubted, failure)):
            RESCUES.labels(cause=Cause.GATE, outcome="passed").inc()
            return None
        refusal = self._refusal(story)
        may_stay = refusal in NOBODYS_FAULT or (refusal is not None and failure.reason in ENDS)
        if may_stay and not failure.hard:
            assert refusal is not None  # noqa: S101
            RESCUES_REFUSED.labels(why=refusal).inc()
            RESCUES.labels(cause=Cause.GATE, outcome="passed").inc()
            return None
        return Fault(Cause.GATE, instance_id, failure, refusal, is_decided=True)

    def _refusal(self, story: Story) -> Refusal | None:
        """Return why an answer is not continued; count it against the budget if it is."""
        refusal = self._why_not(story)
        if refusal is None:
            refusal = self._budget.take(story.case.request.origin.tenant, time.monotonic())
        return refusal

    def _why_not(self, story: Story) -> Refusal | None:
        now_s = time.monotonic()
        refusal = story.why_not()
        if refusal is not None:
            return refusal
        if story.continuations >= self._terms.continuations:
            return Refusal.LIMIT
        if story.deaths >= MOST_DEATHS:
            return Refusal.DEATHS
        if now_s - story.case.begun_s >= self._terms.total_s:
            return Refusal.DEADLINE
        nobody = self._router.relief(now_s, story.case.tried) is None
        return Refusal.NO_INSTANCE if nobody else None

    async def _elsewhere(self, story: Story, fault: Fault) -> Refusal | None:
        """Have one other instance go on; return why none did.

        Raises:
            StreamFaultError: one began to, and does not come to the end.
        """
        case = story.case
        for _ in range(self._reroutes + 1):
            instance = self._router.relief(time.monotonic(), case.tried)
            if instance is None:
                break
            case.tried.append(instance.instance_id)
            try:
                await self._at(story, fault, instance)
            except InstanceFailedError as failure:
                self._note_failure(case, failure, instance)
            except (InstanceSilentError, TimeoutError):
                silent = InstanceFailedError("broken", "did not begin to answer in time")
                self._note_failure(case, silent, instance)
            else:
                return None
        why_not = self._why_not(story)
        return Refusal.NOT_TAKEN if why_not is None or case.failures else why_not

    def _note_failure(
        self, case: Case, failure: InstanceFailedError, instance: RoutedInstance
    ) -> None:
        life = Life.of(instance, self._router.view.version)
        self._reporter.window(life).count_status(INTERNAL_ERROR)
        case.failures.append((failure, life))
        if failure.cause == "unreachable":
            self._router.shun(life.instance_id, time.monotonic())

    async def _at(self, story: Story, fault: Fault, instance: RoutedInstance) -> None:
        """Ask one instance for the rest, and forward it."""
        case = story.case
        life = Life.of(instance, self._router.view.version)
        with under_way(self._router, instance.instance_id):
            wait = self._watch.begin(case.request, life, instance.base_url, time.monotonic())
            try:
                async with asyncio.timeout(self._left_s(story)):
                    rest = await self._prepare(story, instance.base_url)
                wish = self._wishes.of(rest.continuation.asked, life)
                attempt = Attempt(case, instance, life, wish, wait)
                await self._ask(story, fault, attempt, rest)
            finally:
                self._watch.end(wait, time.monotonic())

    def _left_s(self, story: Story) -> float:
        """Return how long an instance may take to begin, within the request's own deadline."""
        left_s = story.case.begun_s + self._terms.total_s - time.monotonic()
        return max(0.0, min(self._terms.first_s, left_s))

    async def _prepare(self, story: Story, base_url: str) -> Rest:
        """Return what an instance is asked.

        Raises:
            InstanceFailedError: the prompt cannot be put together again.
        """
        request = story.case.request
        if story.restarts:
            story.kept = Kept()
            return Rest(Continuation(request.asked), request.order.path, "restart")
        try:
            reasoned = story.shown.reasoned
            rest = await self._asking.prepare(request, story.kept, base_url, reasoned=reasoned)
        except ValueError as error:
            raise InstanceFailedError("broken", "cannot be asked for the rest") from error
        same = rest.asked.route is request.asked.route
        by = "text" if rest.prompt_tokens is None else "ids"
        return Rest(rest, request.order.path if same else rest.path, by)

    async def _ask(self, story: Story, fault: Fault, attempt: Attempt, rest: Rest) -> None:
        while True:
            try:
                return await self._exchange(story, fault, attempt, rest)
            except WishRefusedError as refusal:
                attempt = replace(attempt, wish=refusal.lesser)

    async def _exchange(self, story: Story, fault: Fault, attempt: Attempt, rest: Rest) -> None:
        request, instance_id = story.case.request, attempt.instance.instance_id
        asked = rest.continuation.asked
        order = replace(request.order, path=rest.path, body=attempt.wish.body(asked))
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._left_s(story)):
                asking = self._upstream.ask(attempt.instance.base_url, order)
                reply = await stack.enter_async_context(asking)
                first = await reply.first()
            await self._check(attempt, asked, reply, first)
            story.continuations += 1
            CONTINUATIONS.labels(how=rest.by).inc()
            told = marker(fault, instance_id, story.kept, rest.by)
            prefix = told if story.case.tells_rescue else b""
            splice = self._splice(story, rest.continuation)
            await self._runner.run(story, attempt, reply, first, splice=splice, prefix=prefix)

    def _splice(self, story: Story, continuation: Continuation) -> Splice | None:
        """Return what makes the next events those of the client's stream; None: they begin it."""
        if not story.head.fields:
            story.head = Head()
            return None
        return Splice(
            story.head,
            story.route,
            tokens=continuation.tokens,
            chars=len(story.kept.text),
            prompt_tokens=continuation.prompt_tokens,
            swallow=Swallow(continuation.swallows),
        )

    async def _check(self, attempt: Attempt, asked: Asked, reply: Reply, first: bytes) -> None:
        """Raise where an instance does not go on.

        Raises:
            WishRefusedError: it may, if it is asked for less beside.
            InstanceFailedError: it does not.
        """
        if reply.is_stream and reply.status == OK and not opens_with_error(first):
            return
        try:
            body, _ = await reply.whole(first, LARGEST_REFUSAL_BYTES)
        except StreamBrokenError as broken:
            raise InstanceFailedError("broken", broken.what) from broken
        lesser = self._wishes.lessened(attempt.wish, attempt.life, body)
        if lesser is not None:
            raise WishRefusedError(lesser)
        extra = {"instance_id": attempt.instance.instance_id, "status": reply.status}
        log.warning("continuation_refused", extra={**extra, "path": str(asked.route)})
        raise InstanceFailedError("broken", f"answered {reply.status} to the rest")

    async def _refuse(self, story: Story, fault: Fault, refusal: Refusal) -> None:
        """End a stream that nobody goes on with, in order."""
        case = story.case
        if story.is_bad_everywhere:
            refusal = Refusal.EVERYWHERE
        RESCUES_REFUSED.labels(why=refusal).inc()
        settle_failures(self._reporter, case, None)
        if case.key is not None:
            self._unheard(case.key)
        body = refused(fault, refusal)
        if not case.client.begun:
            await case.client.fail(BAD_GATEWAY, body, fault.instance_id)
            return
        if has_end(story):
            # Evidence that an end came too early is no proof: it may be right.
            rest = story.end if DONE.strip() in story.end else story.end + DONE
        else:
            rest = ending(story.route, body)
        await case.client.write(rest)
        await case.client.end()


def has_end(story: Story) -> bool:
    """Return True where a client that has a beginning can have an end that only looks torn."""
    return bool(story.end) and story.case.client.begun
