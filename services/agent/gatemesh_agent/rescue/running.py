"""Runs one instance's part of a stream: reads, forwards, and watches that it goes on."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from gatemesh_agent.after import After, Answered
from gatemesh_agent.attribution import Finding, Told, finding_of, request_key
from gatemesh_agent.begun import begin_answer
from gatemesh_agent.cases import Attempt
from gatemesh_agent.errors import StreamBrokenError
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.judging import AnswerJudge, Judging
from gatemesh_agent.metrics import (
    HELD_SECONDS,
    HELD_TOKENS,
    HOLDS,
    LEAKED_TOKENS,
    STREAMS_BROKEN,
)
from gatemesh_agent.reporting import Reporter
from gatemesh_agent.requests import Route
from gatemesh_agent.rescue.hold import Flush, Hold
from gatemesh_agent.rescue.leaving import Leaving
from gatemesh_agent.rescue.leg import Leg
from gatemesh_agent.rescue.refusals import Refusal, hides_reasoning
from gatemesh_agent.rescue.splicing import Splice
from gatemesh_agent.rescue.story import Cause, Fault, Story, StreamFaultError
from gatemesh_agent.rescue.terms import RescueTerms
from gatemesh_agent.routing import PoolView, Router
from gatemesh_agent.sse import DONE
from gatemesh_agent.stream import GuardedStream
from gatemesh_agent.strippers import stripper_of
from gatemesh_agent.upstream import Reply
from gatemesh_agent.usual_events import UsualEvents
from gatemesh_agent.watchdog import Watch
from gatemesh_common.messages import CheckLevel

TICK_S = 0.5
"""So often a quiet stream is looked at."""
END_S = 0.5
"""So long the rest of an end may take that is kept back."""
TELLING_TOKENS = 8
"""Clean tokens of a continuation that clear the request."""


@dataclass(slots=True)
class Part:
    """One instance's part under way."""

    story: Story
    attempt: Attempt
    reply: Reply
    judge: AnswerJudge
    leg: Leg
    prefix: bytes = b""
    """Sent before its first bytes."""
    moved: int = 0
    moved_s: float = 0.0
    read_s: float = 0.0
    """When anything came last, or its client had read it."""
    view: PoolView | None = None
    begun: bool = False
    """True once any of it went to the client."""
    heard: bool = False


class Runner:
    """Runs parts of streams."""

    def __init__(
        self,
        *,
        router: Router,
        judging: Judging,
        reporter: Reporter,
        after: After,
        watch: Watch,
        leaving: Leaving,
        terms: RescueTerms,
        max_event_bytes: int,
    ) -> None:
        self._router = router
        self._judging = judging
        self._reporter = reporter
        self._after = after
        self._watch = watch
        self._leaving = leaving
        self._terms = terms
        self._max_event_bytes = max_event_bytes
        self.decide: Callable[[Story, str, Judgement], Fault | None] = let_pass
        """Decides what becomes of an answer that a gate failed."""
        self.may_move: Callable[[Story], bool] = stays
        """Tells whether somebody else goes on; counted against the budget where it says so."""

    async def run(
        self,
        story: Story,
        attempt: Attempt,
        reply: Reply,
        first: bytes,
        *,
        splice: Splice | None = None,
        prefix: bytes = b"",
    ) -> None:
        """Forward an instance's part to the end of the answer.

        Raises:
            StreamFaultError: it does not come to its end; what is good of it is kept.
            ClientGoneError: the client left.
        """
        continued = story.shape is None
        exchange = attempt.exchange(streamed=True, retried=False, continued=continued)
        judge = self._judging.begin(exchange)
        leg = self._leg(story, attempt, judge, splice)
        judge.listener = leg
        if story.kept.text:
            judge.resume(story.kept.text)
        part = Part(story, attempt, reply, judge, leg, prefix)
        part.moved_s = part.read_s = time.monotonic()
        with judge:
            await self._pump(part, first)
        self._hear(part)
        if leg.fault is not None:
            self._keep(part)
            raise StreamFaultError(story, leg.fault)
        await attempt.case.client.end()
        if not story.faults:
            self._tell(part)

    def _leg(
        self, story: Story, attempt: Attempt, judge: AnswerJudge, splice: Splice | None
    ) -> Leg:
        asked, instance_id = attempt.case.request.asked, attempt.instance.instance_id
        guarded = GuardedStream(
            judge,
            added=attempt.wish.count > 0,
            drops_bare=asked.route is Route.CHAT and not asked.keeps_bare_events,
            limit_bytes=self._max_event_bytes,
            stripper=stripper_of(asked.route),
            usual=UsualEvents() if asked.route is Route.CHAT else None,
        )
        return Leg(
            story,
            judge,
            guarded,
            Hold(self._terms.hold, count_hold),
            instance_id=instance_id,
            acts=self._terms.acts_on,
            decide=lambda failure: self.decide(story, instance_id, failure),
            splice=splice,
        )

    async def _pump(self, part: Part, first: bytes) -> None:
        leg = part.leg
        data: bytes | None = first
        try:
            while data != b"":
                now_s = time.monotonic()
                out = leg.idle(now_s) if data is None else self._fed(part, data, now_s)
                await self._send(part, out)
                if leg.end_kept:
                    await self._keep_end(part)
                if leg.fault is not None or self._leaves(part):
                    return
                data = await self._more(part)
            await self._send(part, leg.end(time.monotonic()))
        except StreamBrokenError:
            await self._broke(part)

    async def _keep_end(self, part: Part) -> None:
        """Read what follows an end that is kept back; engines send it at once."""
        with suppress(StreamBrokenError):
            while data := await part.reply.within(END_S):
                part.leg.feed_end(data)

    def _fed(self, part: Part, data: bytes, now_s: float) -> bytes:
        part.read_s = now_s
        out = part.leg.feed(data, now_s)
        self._watch.note(part.attempt.wait, part.judge.progress + part.leg.unread, now_s)
        if part.leg.moved != part.moved:
            part.moved, part.moved_s = part.leg.moved, now_s
        self._hear_early(part)
        return out

    async def _more(self, part: Part) -> bytes | None:
        due_s = part.leg.wait_s(time.monotonic())
        return await part.reply.within(TICK_S if due_s is None else min(TICK_S, due_s))

    async def _send(self, part: Part, out: bytes) -> None:
        if not out:
            return
        wait = part.attempt.wait
        wait.hold()
        if not part.begun:
            await begin_answer(self._reporter, part.attempt, part.reply, None)
            part.begun = True
        await part.story.case.client.write(part.prefix + out)
        part.prefix = b""
        now_s = time.monotonic()
        wait.resume(now_s)
        # While its client did not read, the engine was not to go on.
        part.moved_s = max(part.moved_s, now_s)
        part.read_s = now_s

    def _leaves(self, part: Part) -> bool:
        """Leave an instance that is taken out, or makes no progress, if there is another.

        Raises:
            StreamBrokenError: nothing at all has come for too long.
        """
        now_s, story = time.monotonic(), part.story
        instance_id = part.attempt.instance.instance_id
        if now_s - story.case.begun_s >= self._terms.total_s:
            part.leg.leave(Fault(Cause.STALLED, instance_id, refusal=Refusal.DEADLINE), now_s)
            return True
        if now_s - part.read_s >= self._terms.idle_s:
            # Whether or not anybody can go on: a client is not kept waiting for ever.
            raise StreamBrokenError("was silent for too long")
        cause = self._why_leave(part, now_s)
        if cause is None or part.leg.free or part.leg.ended or not self.may_move(story):
            return False
        part.leg.leave(Fault(cause, instance_id, is_decided=True), now_s)
        if cause is Cause.STALLED:
            self._leaving.note_stall(part.attempt.life)
        return True

    def _why_leave(self, part: Part, now_s: float) -> Cause | None:
        view, story = self._router.view, part.story
        if part.view is not view:
            if self._leaving.is_ejected(part.attempt.instance.instance_id):
                return Cause.EJECTED
            part.view = view
        if not part.moved and hides_reasoning(story.route, story.case.request.asked.body or {}):
            # It may be thinking all the time; the watchdog asks the engine's counters.
            return None
        limit_s = self._terms.stall_s if part.moved else self._terms.first_s
        return Cause.STALLED if now_s - part.moved_s >= limit_s else None

    async def _broke(self, part: Part) -> None:
        """The connection is gone: that is the end, or the answer had ended already."""
        STREAMS_BROKEN.inc()
        self._reporter.window(part.attempt.life).server_errors += 1
        now_s, leg = time.monotonic(), part.leg
        if leg.ended and part.story.route in (Route.CHAT, Route.COMPLETIONS):
            await self._send(part, leg.close(now_s) + (b"" if leg.done else DONE))
            return
        leg.leave(Fault(Cause.BROKEN, part.attempt.instance.instance_id), now_s)

    def _keep(self, part: Part) -> None:
        story, leg = part.story, part.leg
        story.whole = leg.is_whole
        story.kept = leg.kept()
        if leg.end_kept or leg.tokens:
            story.end = leg.end_kept
        LEAKED_TOKENS.inc(leg.leaked)

    def _hear_early(self, part: Part) -> None:
        """A few clean tokens behind a fault tell whose it was, long before the answer's end."""
        case, leg = part.story.case, part.leg
        if part.heard or case.key is None or leg.tokens < TELLING_TOKENS or part.judge.failures:
            return
        part.heard = True
        judged = {CheckLevel.L1, CheckLevel.L3} if leg.is_measured else {CheckLevel.L1}
        reach = part.story.kept.tokens + leg.tokens
        told = Told(Finding.CLEAN, frozenset(judged), reach)
        self._after.hear(case.key, part.attempt.life, told)

    def _hear(self, part: Part) -> None:
        """Note what this instance made of the request: evidence where another one failed it."""
        case, judge, finding = part.story.case, part.judge, finding_of(part.judge.failures)
        if case.key is not None and not judge.given_up:
            self._after.hear(case.key, part.attempt.life, Told(finding, judge.judged))
        elif finding is not Finding.CLEAN:
            case.key = request_key(case.request.asked, case.request.order.path)

    def _tell(self, part: Part) -> None:
        """Hand a judged answer that one instance wrote to those who read answers afterwards."""
        case, judge = part.story.case, part.judge
        failures = tuple(judge.failures)
        self._after.answered(
            Answered(
                request=case.request,
                life=part.attempt.life,
                first=judge.first,
                failures=failures,
                streamed=True,
                wants_shadow=case.wants_shadow,
            )
        )


def let_pass(_story: Story, _instance_id: str, _failure: Judgement) -> None:
    """Let an answer pass."""


def stays(_story: Story) -> bool:
    """Return False: nobody else can go on."""
    return False


def count_hold(flush: Flush) -> None:
    """Count one end of a hold."""
    HOLDS.labels(outcome=flush.why or "dropped").inc()
    HELD_SECONDS.observe(flush.seconds)
    HELD_TOKENS.inc(flush.tokens)
