"""Guarded requests: judged on the way through, and asked elsewhere when an instance fails early."""

import time
from dataclasses import dataclass, field, replace

from gatemesh_agent.answers import no_instance, stream_broken, upstream_failed, upstream_silent
from gatemesh_agent.client import Client
from gatemesh_agent.engine_errors import (
    INTERNAL_ERROR,
    drain_refused,
    engine_died,
    highest_allowed,
    names_logprobs,
    opens_with_error,
)
from gatemesh_agent.errors import (
    InstanceFailedError,
    InstanceSilentError,
    LogprobsRefusedError,
    NanRefusedError,
    StreamBrokenError,
)
from gatemesh_agent.judging import AnswerJudge, Judging
from gatemesh_agent.metrics import FIRST_BYTE_SECONDS, STREAMS_BROKEN
from gatemesh_agent.reporting import Life, Origin, Reporter
from gatemesh_agent.requests import Asked, Route, with_logprobs
from gatemesh_agent.routing import Router
from gatemesh_agent.stream import GuardedStream, cut_whole
from gatemesh_agent.stripping import LogprobsCut, part
from gatemesh_agent.under_way import under_way
from gatemesh_agent.upstream import Order, Reply, Upstream
from gatemesh_common.messages import RoutedInstance

OK = 200
BAD_REQUEST = 400
CLIENT_ERRORS = range(400, 500)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a guarded request may go."""

    pool: str
    reroutes: int
    top_logprobs: int
    max_answer_bytes: int
    max_event_bytes: int


@dataclass(slots=True)
class Case:
    """One guarded request and what has become of it so far."""

    asked: Asked
    origin: Origin
    order: Order
    client: Client
    begun_s: float
    tried: list[str] = field(default_factory=list)
    failures: list[tuple[InstanceFailedError, Life]] = field(default_factory=list)
    last_resort: RoutedInstance | None = None
    """An instance whose log probabilities are NaN: it can still answer without them."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One case at one instance."""

    case: Case
    instance: RoutedInstance
    life: Life
    count: int
    """Log probabilities asked beside what the client asked; 0 when nothing is added."""
    is_last: bool = False
    """True when nobody else is left: the client gets whatever comes."""


class Guard:
    """Serves requests for text through the gates."""

    def __init__(
        self,
        router: Router,
        upstream: Upstream,
        judging: Judging,
        reporter: Reporter,
        bounds: Bounds,
    ) -> None:
        self._router = router
        self._upstream = upstream
        self._judging = judging
        self._reporter = reporter
        self._bounds = bounds
        self._allowed: dict[Life, int] = {}

    async def serve(self, case: Case) -> None:
        """Answer a request by the first instance that can, or say why none could.

        Raises:
            ClientGoneError: the client left before its answer ended.
        """
        while (instance := self._next(case)) is not None:
            if await self._try(case, instance):
                return
        await self._give_up(case)

    def _next(self, case: Case) -> RoutedInstance | None:
        if len(case.tried) > self._bounds.reroutes:
            return None
        return self._router.pick(time.monotonic(), case.tried)

    async def _try(self, case: Case, instance: RoutedInstance) -> bool:
        """Return True when the client has its answer, good or bad."""
        life = Life.of(instance, self._router.view.version)
        case.tried.append(instance.instance_id)
        try:
            with under_way(self._router, instance.instance_id):
                await self._ask(Attempt(case, instance, life, self._count(case, life)))
        except InstanceFailedError as failure:
            self._note_failure(case, failure, life)
            return False
        except NanRefusedError:
            case.last_resort = instance
            return False
        except InstanceSilentError as silence:
            self._reporter.window(life).count_status(INTERNAL_ERROR)
            self._settle_failures(case, None)
            body = upstream_silent(instance.instance_id, silence.waited_s)
            await case.client.fail(504, body, instance.instance_id)
        return True

    def _count(self, case: Case, life: Life) -> int:
        if not case.asked.may_add:
            return 0
        return min(self._bounds.top_logprobs, self._allowed.get(life, self._bounds.top_logprobs))

    def _note_failure(self, case: Case, failure: InstanceFailedError, life: Life) -> None:
        self._reporter.window(life).count_status(INTERNAL_ERROR)
        case.failures.append((failure, life))
        if failure.cause == "unreachable":
            self._router.shun(life.instance_id, time.monotonic())

    def _settle_failures(self, case: Case, rerouted_to: str | None) -> None:
        failures, case.failures = case.failures, []
        for failure, life in failures:
            self._reporter.reject(failure, case.origin, life, rerouted_to)

    async def _give_up(self, case: Case) -> None:
        """No instance is left that could answer as asked."""
        if case.last_resort is not None and await self._try_plain(case, case.last_resort):
            return
        failures = list(case.failures)
        self._settle_failures(case, None)
        if failures:
            failure, life = failures[-1]
            body = upstream_failed(life.instance_id, failure.what)
            await case.client.fail(502, body, life.instance_id)
        else:
            self._reporter.reject_all(case.origin)
            await case.client.fail(503, no_instance(self._bounds.pool), Retry_After="1")

    async def _try_plain(self, case: Case, instance: RoutedInstance) -> bool:
        """Ask as the client asked, without log probabilities; True when that gave an answer."""
        life = Life.of(instance, self._router.view.version)
        try:
            with under_way(self._router, instance.instance_id):
                await self._ask(Attempt(case, instance, life, 0, is_last=True))
        except (InstanceFailedError, InstanceSilentError) as failure:
            broken = InstanceFailedError("broken", str(failure))
            self._note_failure(case, broken, life)
            return False
        return True

    async def _ask(self, attempt: Attempt) -> None:
        while True:
            try:
                return await self._exchange(attempt)
            except LogprobsRefusedError as refusal:
                attempt = replace(attempt, count=refusal.allowed or 0)
                if refusal.allowed is not None:
                    self._allowed[attempt.life] = attempt.count

    async def _exchange(self, attempt: Attempt) -> None:
        case = attempt.case
        body = with_logprobs(case.asked, attempt.count) if attempt.count else case.asked.raw
        order = replace(case.order, body=body)
        async with self._upstream.ask(attempt.instance.base_url, order) as reply:
            first = await reply.first()
            if reply.is_stream and reply.status == OK:
                await self._stream(attempt, reply, first)
            else:
                await self._whole(attempt, reply, first)

    async def _begin(self, attempt: Attempt, reply: Reply, length: int | None) -> None:
        """From here on nobody else can answer this client."""
        instance_id = attempt.instance.instance_id
        self._settle_failures(attempt.case, instance_id)
        self._reporter.window(attempt.life).count_status(reply.status)
        FIRST_BYTE_SECONDS.observe(time.monotonic() - attempt.case.begun_s)
        headers = reply.response.headers
        client = attempt.case.client
        await client.begin(reply.status, reply.response.reason, headers, instance_id, length)

    def _judge(self, attempt: Attempt, *, streamed: bool) -> AnswerJudge:
        case = attempt.case
        return self._judging.begin(
            case.asked, case.origin, attempt.life, attempt.count, streamed=streamed
        )

    async def _stream(self, attempt: Attempt, reply: Reply, first: bytes) -> None:
        if opens_with_error(first):
            died = engine_died(INTERNAL_ERROR, first)
            self._check(attempt, INTERNAL_ERROR if died else BAD_REQUEST, first)
        await self._begin(attempt, reply, None)
        client = attempt.case.client
        with self._judge(attempt, streamed=True) as judge:
            try:
                await pump(reply, first, self._guarded(attempt, judge), client)
            except StreamBrokenError as broken:
                STREAMS_BROKEN.inc()
                self._reporter.window(attempt.life).server_errors += 1
                await client.write(stream_broken(attempt.instance.instance_id, broken.what))
        await client.end()

    def _guarded(self, attempt: Attempt, judge: AnswerJudge) -> GuardedStream:
        asked = attempt.case.asked
        return GuardedStream(
            judge,
            added=attempt.count > 0,
            drops_bare=asked.route is Route.CHAT and not asked.keeps_bare_events,
            limit_bytes=self._bounds.max_event_bytes,
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
        if reply.status == OK:
            with self._judge(attempt, streamed=False) as judge:
                body = judged_whole(body, judge, reply, added=attempt.count > 0)
        await self._begin(attempt, reply, len(body))
        client = attempt.case.client
        await client.write(body)
        await client.end()

    async def _forward_large(self, attempt: Attempt, reply: Reply, begun: bytes) -> None:
        """Forward an answer that is too large to hold, without what was added."""
        cut = LogprobsCut()
        client = attempt.case.client
        await self._begin(attempt, reply, None)
        data = begun
        try:
            while data:
                await client.write(cut.feed(data) if attempt.count else data)
                data = await reply.more()
        except StreamBrokenError:
            STREAMS_BROKEN.inc()
            client.abort()
            return
        await client.write(cut.end())
        await client.end()

    def _check(self, attempt: Attempt, status: int, body: bytes) -> None:
        """Raise what an engine's error means, where it is not the client's to see."""
        case = attempt.case
        if status in CLIENT_ERRORS and not attempt.is_last:
            if self._judging.take_refusal(status, body, case.origin, attempt.life):
                raise NanRefusedError
            if attempt.count and names_logprobs(body):
                raise LogprobsRefusedError(highest_allowed(body, below=attempt.count))
        if drain_refused(status, body):
            raise InstanceFailedError("draining", "is being stopped")
        if engine_died(status, body) and self._router.is_out(attempt.instance.instance_id):
            raise InstanceFailedError("draining", "was stopped under the request")


async def pump(reply: Reply, first: bytes, guarded: GuardedStream, client: Client) -> None:
    """Forward a stream piece by piece; the engine is read no faster than the client reads.

    Raises:
        StreamBrokenError: the engine broke it off.
        ClientGoneError: the client left.
    """
    data = first
    while data:
        forwarded = guarded.feed(data)
        if forwarded:
            await client.write(forwarded)
        data = await reply.more()
    rest = guarded.end()
    if rest:
        await client.write(rest)


def judged_whole(body: bytes, judge: AnswerJudge, reply: Reply, *, added: bool) -> bytes:
    """Judge an answer that is not streamed; return what the client gets."""
    if not reply.is_plain_json:
        judge.give_up("unreadable")
        return body
    try:
        parted = part(body)
    except (ValueError, RecursionError):
        judge.give_up("unreadable")
        return cut_whole(body) if added else body
    judge.take_event(parted.fields)
    return parted.rest if added else body
