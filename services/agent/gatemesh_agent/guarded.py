"""Guarded requests: judged on the way through, and asked elsewhere when an instance fails early."""

import time
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace

from gatemesh_agent.after import After, Answered
from gatemesh_agent.answers import (
    no_instance,
    stream_broken,
    upstream_failed,
    upstream_silent,
)
from gatemesh_agent.attribution import Finding, Told, finding_of, request_key
from gatemesh_agent.begun import begin_answer, settle_failures
from gatemesh_agent.cases import Attempt, Bounds, Case, EngineError, MoveCause
from gatemesh_agent.engine_errors import (
    INTERNAL_ERROR,
    drain_refused,
    engine_died,
    opens_with_error,
    told_status,
)
from gatemesh_agent.errors import (
    InstanceFailedError,
    InstanceSilentError,
    NanRefusedError,
    StreamBrokenError,
    UnfitAnswerError,
    WishRefusedError,
)
from gatemesh_agent.filtering import answer_flagged, request_flagged
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.giving import give_first_error, give_least_bad
from gatemesh_agent.judging import AnswerJudge, Judging
from gatemesh_agent.metrics import FLAGGED, STREAMS_BROKEN, UNFIT
from gatemesh_agent.moving import EngineFailedError, Moving, cause_of
from gatemesh_agent.reporting import Life, Reporter
from gatemesh_agent.requests import Route
from gatemesh_agent.rescue.carrying import Rescuer
from gatemesh_agent.rescue.story import StreamFaultError
from gatemesh_agent.routing import Router
from gatemesh_agent.shield import Withheld, worst
from gatemesh_agent.stream import GuardedStream, announces_only
from gatemesh_agent.strippers import stripper_of
from gatemesh_agent.under_way import under_way
from gatemesh_agent.upstream import Reply, Upstream
from gatemesh_agent.usual_events import UsualEvents
from gatemesh_agent.watchdog import Watch
from gatemesh_agent.whole import is_torn, judged_whole, whole_error
from gatemesh_agent.wishes import NOTHING, Wish, Wishes
from gatemesh_common.messages import Reason, RoutedInstance

OK = 200
BAD_REQUEST = 400
CLIENT_ERRORS = range(400, 500)


class Guard:
    """Serves requests for text through the gates."""

    def __init__(
        self,
        *,
        router: Router,
        upstream: Upstream,
        judging: Judging,
        reporter: Reporter,
        wishes: Wishes,
        after: After,
        watch: Watch,
        bounds: Bounds,
        moving: Moving | None = None,
        rescuer: Rescuer | None = None,
    ) -> None:
        self._moving = moving
        """Set where errors of engines are kept from clients."""
        self._rescuer = rescuer
        self._router = router
        self._upstream = upstream
        self._judging = judging
        self._reporter = reporter
        self._wishes = wishes
        self._after = after
        self._watch = watch
        self._bounds = bounds

    async def serve(self, case: Case) -> None:
        """Answer a request by the first instance that can, or say why none could.

        Raises:
            ClientGoneError: the client left before its answer ended.
        """
        if await self._refused(case):
            return
        while (instance := self._next(case)) is not None:
            if await self._try(case, instance):
                return
        await self._give_up(case)

    async def _refused(self, case: Case) -> bool:
        """Refuse what a plugged-in gate flags, in shield mode; True when no engine is to see it."""
        flagged = self._judging.flags(case.request.asked) if self._bounds.shield.is_up else None
        if flagged is None:
            return False
        FLAGGED.labels(gate=flagged.name, stage="request").inc()
        await case.client.fail(BAD_REQUEST, request_flagged(flagged.name))
        return True

    def _next(self, case: Case) -> RoutedInstance | None:
        if len(case.tried) > self._bounds.reroutes:
            return None
        choose = self._router.relief if case.errors else self._router.pick
        return choose(time.monotonic(), case.tried)

    async def _try(self, case: Case, instance: RoutedInstance) -> bool:
        """Return True when the client has its answer, good or bad."""
        life = Life.of(instance, self._router.view.version)
        case.tried.append(instance.instance_id)
        try:
            wish = self._wishes.of(case.request.asked, life)
            await self._ask_at(case, instance, life, wish)
        except InstanceFailedError as failure:
            self._note_failure(case, failure, life)
            return False
        except EngineFailedError as failure:
            return await self._moved(case, failure.error)
        except StreamFaultError as fault:
            await self._carry_on(fault)
        except NanRefusedError:
            case.last_resort = instance
            refusal = Withheld(instance.instance_id, hard=True, reason=Reason.NAN_LOGITS)
            case.withheld.append(refusal)
            return False
        except UnfitAnswerError as unfit:
            case.withheld.append(unfit.withheld)
            UNFIT.labels(fate="withheld").inc()
            return False
        except InstanceSilentError as silence:
            return await self._silent(case, life, silence)
        return True

    async def _moved(self, case: Case, error: EngineError) -> bool:
        """Keep an engine's error; give the client the first one where nobody else may be asked."""
        case.errors.append(error)
        if error.cause == "busy":
            self._router.shun(error.life.instance_id, time.monotonic())
        if self._moves(case, error.cause):
            return False
        await self._give_up(case)
        return True

    def _moves(self, case: Case, cause: MoveCause) -> bool:
        return self._moving is not None and self._moving.allows(case, cause)

    async def _silent(self, case: Case, life: Life, silence: InstanceSilentError) -> bool:
        """Have somebody else answer, or tell the client that nothing came."""
        if self._moves(case, "silent"):
            self._note_failure(case, InstanceFailedError("broken", str(silence)), life)
            return False
        if case.withheld or case.errors or case.last_resort is not None:
            self._note_failure(case, InstanceFailedError("broken", str(silence)), life)
            await self._give_up(case)
            return True
        self._reporter.window(life).count_status(INTERNAL_ERROR)
        settle_failures(self._reporter, case, None)
        body = upstream_silent(life.instance_id, silence.waited_s)
        await case.client.fail(504, body, life.instance_id)
        return True

    async def _carry_on(self, fault: StreamFaultError) -> None:
        """Have others end the stream of an instance that is left by now."""
        assert self._rescuer is not None  # noqa: S101
        await self._rescuer.carry_on(fault.story, fault.fault)

    async def _ask_at(
        self,
        case: Case,
        instance: RoutedInstance,
        life: Life,
        wish: Wish,
        *,
        is_last: bool = False,
    ) -> None:
        """Ask an instance, count the request there, and have the watchdog wait with it."""
        with under_way(self._router, instance.instance_id):
            wait = self._watch.begin(case.request, life, instance.base_url, time.monotonic())
            try:
                await self._ask(Attempt(case, instance, life, wish, wait, is_last))
            finally:
                self._watch.end(wait, time.monotonic())

    def _note_failure(self, case: Case, failure: InstanceFailedError, life: Life) -> None:
        self._reporter.window(life).count_status(INTERNAL_ERROR)
        case.failures.append((failure, life))
        if failure.cause == "unreachable":
            self._router.shun(life.instance_id, time.monotonic())

    async def _give_up(self, case: Case) -> None:
        """No instance is left that could answer as asked."""
        if self._bounds.shield.is_up and case.withheld and not case.errors:
            await give_least_bad(self._reporter, case)
            return
        if case.errors:
            await give_first_error(self._reporter, case)
            return
        if case.last_resort is not None and await self._try_plain(case, case.last_resort):
            return
        failures = list(case.failures)
        settle_failures(self._reporter, case, None)
        if failures:
            failure, life = failures[-1]
            body = upstream_failed(life.instance_id, failure.what)
            await case.client.fail(502, body, life.instance_id)
        else:
            self._reporter.reject_all(case.request.origin)
            await case.client.fail(503, no_instance(self._bounds.pool), Retry_After="1")

    async def _try_plain(self, case: Case, instance: RoutedInstance) -> bool:
        """Ask as the client asked, without log probabilities; True when that gave an answer."""
        life = Life.of(instance, self._router.view.version)
        try:
            await self._ask_at(case, instance, life, NOTHING, is_last=True)
        except (InstanceFailedError, InstanceSilentError) as failure:
            broken = InstanceFailedError("broken", str(failure))
            self._note_failure(case, broken, life)
            return False
        return True

    async def _ask(self, attempt: Attempt) -> None:
        while True:
            try:
                return await self._exchange(attempt)
            except WishRefusedError as refusal:
                attempt = replace(attempt, wish=refusal.lesser)

    async def _exchange(self, attempt: Attempt) -> None:
        request = attempt.case.request
        order = request.order.with_body(attempt.wish.body(request.asked))
        begun_s = time.monotonic()
        reply: Reply | None = None
        try:
            async with self._hope(attempt):
                reply = await self._upstream.open(attempt.instance.base_url, order)
                first = await reply.first()
            if reply.is_stream and reply.status == OK:
                taken_s = time.monotonic() - begun_s
                self._reporter.window(attempt.life).note_first_token(taken_s)
                await self._stream(attempt, reply, first)
            else:
                await self._whole(attempt, reply, first)
        finally:
            if reply is not None:
                reply.close()

    def _hope(self, attempt: Attempt) -> AbstractAsyncContextManager[None]:
        """Return what ends the wait for an instance in which others have lost hope."""
        if self._rescuer is None:
            return nullcontext()
        case = attempt.case
        streamed = bool((case.request.asked.body or {}).get("stream"))
        may_leave = None if streamed else lambda: self._moves(case, "stalled")
        return self._rescuer.leaving.waiting(
            attempt.life, may_leave, is_last=lambda: self._next(case) is None
        )

    async def _begin(self, attempt: Attempt, reply: Reply, length: int | None) -> None:
        """From here on nobody else can answer this client."""
        await begin_answer(self._reporter, attempt, reply, length)

    def _judge(self, attempt: Attempt, *, streamed: bool) -> AnswerJudge:
        retried = self._bounds.shield.is_up and not streamed and not attempt.is_last
        return self._judging.begin(attempt.exchange(streamed=streamed, retried=retried))

    def _hear(self, attempt: Attempt, judge: AnswerJudge) -> None:
        """Note what this instance made of the request: evidence where another one failed it."""
        case, finding = attempt.case, finding_of(judge.failures)
        self._watch.note(attempt.wait, judge.progress + 1, time.monotonic())
        if case.key is not None and not judge.given_up:
            self._after.hear(case.key, attempt.life, Told(finding, judge.judged))
        elif finding is not Finding.CLEAN:
            self._mark(case)

    def _tell(self, attempt: Attempt, judge: AnswerJudge, *, streamed: bool) -> None:
        """Hand a judged answer to those who read answers afterwards."""
        case, failures = attempt.case, tuple(judge.failures)
        self._after.answered(
            Answered(case.request, attempt.life, judge.first, failures, streamed, case.wants_shadow)
        )

    def _mark(self, case: Case) -> None:
        case.key = request_key(case.request.asked, case.request.order.path)

    async def _opening(self, attempt: Attempt, reply: Reply, first: bytes) -> bytes:
        """Return the beginning of a stream, as far as it proves that there is an answer."""
        data = first
        try:
            while announces_only(attempt.case.request.asked.route, data):
                more = await reply.more()
                if not more:
                    break
                data += more
        except StreamBrokenError as broken:
            if attempt.wish.count:
                # So an engine refuses log probabilities whose stream it has begun to announce.
                raise WishRefusedError(NOTHING) from broken
            raise InstanceFailedError("broken", f"{broken.what} within its answer") from broken
        return data

    async def _stream(self, attempt: Attempt, reply: Reply, first: bytes) -> None:
        first = await self._opening(attempt, reply, first)
        if not first and self._moving is not None and not attempt.is_last:
            raise InstanceFailedError("broken", "ended its answer before it began")
        if opens_with_error(first):
            first = await self._clients_error(attempt, reply, first)
        elif self._rescuer is not None and not attempt.is_last:
            await self._rescuer.run(self._rescuer.open(attempt.case), attempt, reply, first)
            return
        await self._begin(attempt, reply, None)
        client = attempt.case.client
        with self._judge(attempt, streamed=True) as judge:
            try:
                await self._pump(attempt, reply, first, judge)
            except StreamBrokenError as broken:
                STREAMS_BROKEN.inc()
                self._reporter.window(attempt.life).server_errors += 1
                route, instance_id = attempt.case.request.asked.route, attempt.instance.instance_id
                await client.write(stream_broken(route, instance_id, broken.what))
        self._hear(attempt, judge)
        await client.end()
        self._tell(attempt, judge, streamed=True)

    async def _clients_error(self, attempt: Attempt, reply: Reply, first: bytes) -> bytes:
        """Return the error with which a stream opens, as far as it was read; raise if another may.

        Raises:
            EngineFailedError: it is the engine's own.
        """
        if self._moving is not None:
            first = await whole_error(reply, first)
        died = engine_died(INTERNAL_ERROR, first)
        self._check(attempt, INTERNAL_ERROR if died else BAD_REQUEST, first)
        self._move(attempt, reply, first, cause_of(told_status(first), first))
        return first

    def _move(self, attempt: Attempt, reply: Reply, body: bytes, cause: MoveCause | None) -> None:
        """Raise where somebody else is to answer instead."""
        if cause is None or self._moving is None or attempt.is_last:
            return
        length = None if reply.is_stream else len(body)
        reason, headers = reply.response.reason, reply.response.headers
        raise EngineFailedError(
            EngineError(attempt.life, cause, reply.status, reason, headers, body, length)
        )

    async def _pump(self, attempt: Attempt, reply: Reply, first: bytes, judge: AnswerJudge) -> None:
        """Forward a stream piece by piece; the engine is read no faster than the client reads.

        Raises:
            StreamBrokenError: the engine broke it off.
            ClientGoneError: the client left.
        """
        guarded, wait, client = self._guarded(attempt, judge), attempt.wait, attempt.case.client
        data, pieces = first, 0
        while data:
            forwarded = guarded.feed(data)
            # What is not read event by event moves with each piece.
            pieces += judge.given_up
            self._watch.note(wait, judge.progress + pieces, time.monotonic())
            if forwarded:
                wait.hold()
                await client.write(forwarded)
                wait.resume(time.monotonic())
            data = await reply.more()
        rest = guarded.end()
        if rest:
            await client.write(rest)

    def _guarded(self, attempt: Attempt, judge: AnswerJudge) -> GuardedStream:
        asked = attempt.case.request.asked
        return GuardedStream(
            judge,
            added=attempt.wish.count > 0,
            drops_bare=asked.route is Route.CHAT and not asked.keeps_bare_events,
            limit_bytes=self._bounds.max_event_bytes,
            stripper=stripper_of(asked.route),
            usual=UsualEvents() if asked.route is Route.CHAT else None,
        )

    async def _whole(self, attempt: Attempt, reply: Reply, first: bytes) -> None:
        try:
            body, complete = await reply.whole(first, self._bounds.max_answer_bytes)
        except StreamBrokenError as broken:
            raise InstanceFailedError("broken", f"{broken.what} within its answer") from broken
        if not complete:
            with self._judge(attempt, streamed=False) as judge:
                judge.give_up("too_large")
            await self._forward_large(attempt, reply, body)
            return
        self._check(attempt, reply.status, body)
        if reply.status != OK:
            self._move(attempt, reply, body, cause_of(reply.status, body))
            await self._give(attempt, reply, body)
            self._after.refused(attempt.case.request, attempt.life, reply.status, body)
            return
        hidden = await self._hidden(attempt, reply, body)
        with self._judge(attempt, streamed=False) as judge:
            if hidden is not None:
                judge.object(hidden)
            asked = attempt.case.request.asked
            stripper = stripper_of(asked.route) if attempt.wish.count else None
            body = judged_whole(body, judge, reply, stripper, asked)
        self._move(attempt, reply, body, "torn" if is_torn(attempt, reply, judge) else None)
        self._hear(attempt, judge)
        if judge.flagged and self._bounds.shield.is_up:
            FLAGGED.labels(gate=judge.flagged[0].name, stage="answer").inc()
            body = answer_flagged(attempt.case.request.asked.route, body)
        try:
            self._withhold(attempt, judge, reply, body)
            await self._give(attempt, reply, body)
        finally:
            self._tell(attempt, judge, streamed=False)

    async def _hidden(self, attempt: Attempt, reply: Reply, body: bytes) -> Judgement | None:
        """Return what is at fault with an answer whose tokens do not all show."""
        if self._rescuer is None or attempt.is_last:
            return None
        return await self._rescuer.counting.hidden(attempt, reply, body)

    async def _give(self, attempt: Attempt, reply: Reply, body: bytes) -> None:
        """Send the client a whole answer."""
        await self._begin(attempt, reply, len(body))
        client = attempt.case.client
        await client.write(body)
        await client.end()

    def _withhold(self, attempt: Attempt, judge: AnswerJudge, reply: Reply, body: bytes) -> None:
        """Raise where a bad answer is not for the client."""
        if attempt.is_last or not self._bounds.shield.withholds(judge.failures):
            return
        self._reporter.window(attempt.life).count_status(reply.status)
        found, response = worst(judge.failures), reply.response
        raise UnfitAnswerError(
            Withheld(
                instance_id=attempt.instance.instance_id,
                hard=found.hard,
                reason=found.reason,
                status=reply.status,
                http_reason=response.reason,
                headers=response.headers,
                body=body,
            )
        )

    async def _forward_large(self, attempt: Attempt, reply: Reply, begun: bytes) -> None:
        """Forward an answer that is too large to hold, without what was added."""
        cut = stripper_of(attempt.case.request.asked.route).open_cut()
        client = attempt.case.client
        await self._begin(attempt, reply, None)
        data = begun
        try:
            while data:
                await client.write(cut.feed(data) if attempt.wish.count else data)
                data = await reply.more()
        except StreamBrokenError:
            STREAMS_BROKEN.inc()
            client.abort()
            return
        await client.write(cut.end())
        await client.end()

    def _check(self, attempt: Attempt, status: int, body: bytes) -> None:
        """Raise what an engine's error means, where it is not the client's to see."""
        if status in CLIENT_ERRORS and not attempt.is_last:
            self._check_refusal(attempt, status, body)
        if drain_refused(status, body):
            raise InstanceFailedError("draining", "is being stopped")
        if engine_died(status, body):
            self._check_death(attempt)

    def _check_death(self, attempt: Attempt) -> None:
        """Raise where another engine may take over: the request may be what killed this one."""
        if self._router.is_out(attempt.instance.instance_id):
            raise InstanceFailedError("draining", "was stopped under the request")
        case = attempt.case
        if self._moving is not None and not case.deaths and not attempt.is_last:
            case.deaths += 1
            raise InstanceFailedError("broken", "died under the request")

    def _check_refusal(self, attempt: Attempt, status: int, body: bytes) -> None:
        exchange = attempt.exchange(streamed=False, retried=True)
        if self._judging.take_refusal(status, body, exchange):
            if attempt.case.key is None:
                self._mark(attempt.case)
            raise NanRefusedError
        lesser = self._wishes.lessened(attempt.wish, attempt.life, body)
        if lesser is not None:
            raise WishRefusedError(lesser)
