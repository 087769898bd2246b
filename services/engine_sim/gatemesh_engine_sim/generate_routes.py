"""The routes that generate text: from request to bytes, at the set pace."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import web

from gatemesh_engine_sim.answering import Plan, plan_answer
from gatemesh_engine_sim.errors import (
    ApiError,
    bad_request,
    internal_error,
    not_a_number,
    queue_full,
)
from gatemesh_engine_sim.fault_plan import FaultSpec
from gatemesh_engine_sim.faults import Delivery
from gatemesh_engine_sim.intake import Asked, Route, parse_body, understand
from gatemesh_engine_sim.messages_wire import message_error
from gatemesh_engine_sim.metrics import Finished
from gatemesh_engine_sim.pacing import Pace
from gatemesh_engine_sim.plugin_lines import tell
from gatemesh_engine_sim.scoring import Scored
from gatemesh_engine_sim.service import Service, json_response
from gatemesh_engine_sim.settings import SimSettings
from gatemesh_engine_sim.wire import DONE, Reply, Wire, stream_events
from gatemesh_engine_sim.wires import wire_for


@dataclass(slots=True)
class Job:
    """One request on its way through the engine; times by the service's clock."""

    request: web.Request
    asked: Asked
    plan: Plan
    wire: Wire
    pace: Pace
    arrived_s: float
    begun_s: float = 0.0
    first_token_s: float = 0.0

    @property
    def generated_tokens(self) -> int:
        """Tokens of all choices together."""
        return sum(map(len, self.plan.choices))


class EventStream:
    """A response of server-sent events, opened with its first write at the latest."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self.response = web.StreamResponse()
        self.response.headers["Content-Type"] = "text/event-stream; charset=utf-8"

    @property
    def is_open(self) -> bool:
        """True once the status has been sent."""
        return self.response.prepared

    async def open(self) -> None:
        """Send the status and headers."""
        if not self.is_open:
            await self.response.prepare(self._request)

    async def write(self, events: bytes) -> None:
        """Send whole events."""
        await self.open()
        await self.response.write(events)


class UnendedError(Exception):
    """A stream ends here as if that were its end."""


class Generator:
    """Answers requests for text."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/chat/completions`."""
        return await self._answer(request, Route.CHAT)

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/completions`."""
        return await self._answer(request, Route.COMPLETIONS)

    async def responses(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/responses`."""
        return await self._answer(request, Route.RESPONSES)

    async def messages(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/messages`."""
        return await self._answer(request, Route.MESSAGES)

    async def _answer(self, request: web.Request, route: Route) -> web.StreamResponse:
        streamed = False
        try:
            body = parse_body(await request.read())
            streamed = bool(body.get("stream"))
            job = self._job(request, route, body)
            return await (self._stream(job) if streamed else self._whole(job))
        except ApiError as error:
            if streamed and error.late:
                return await LATE_ERRORS[route](request, error)
            shaped = route is Route.MESSAGES
            return json_response(message_error(error) if shaped else error.body(), error.status)

    def _job(self, request: web.Request, route: Route, body: dict[str, object]) -> Job:
        service = self._service
        settings = service.settings
        asked = understand(route, body, request.headers, settings, service.library.vocabulary)
        spec = service.plan.choose(asked.fault, service.age_s(), salted="cache_salt" in body)
        if spec and spec.fault not in service.faults:
            raise bad_request(f"sim_fault: no fault is called {spec.fault!r}", "sim_fault")
        plan = plan_answer(asked, spec, service.faults, service.library)
        tell(body, plan, settings, service.wall_clock())
        request_id = request.headers.get("X-Request-Id") or service.new_id()
        scores = prompt_scores(asked, spec, service)
        reply = Reply(request_id, int(service.wall_clock()), asked, scores)
        pace = pace_of(plan, settings)
        return Job(request, asked, plan, wire_for(reply), pace, service.clock())

    async def _whole(self, job: Job) -> web.Response:
        clock = self._service.clock
        async with self._service.engine.slot():
            job.begun_s = clock()
            with suppress(UnendedError):
                await self._strike(job)
            await job.pace.reach(0, job.begun_s, clock)
            job.first_token_s = clock()
            if not job.pace.is_instant:
                await job.pace.reach(max(map(len, job.plan.choices)) - 1, job.begun_s, clock)
            body = _whole_body(job)
            self._count(job)
        return json_response(body)

    async def _stream(self, job: Job) -> web.StreamResponse:
        stream = EventStream(job.request)
        try:
            async with self._service.engine.slot():
                await self._send(job, stream)
                self._count(job)
        except UnendedError:
            await stream.open()
        except ApiError as error:
            if not stream.is_open:
                raise
            await stream.write(error.event() + DONE)
        return stream.response

    async def _send(self, job: Job, stream: EventStream) -> None:
        clock, plan = self._service.clock, job.plan
        per_write = self._service.settings.events_per_write
        job.begun_s = clock()
        if not plan.refuses:
            await stream.open()
        held: list[bytes] = []
        for count, (place, event) in enumerate(stream_events(job.wire, plan.choices)):
            if place == plan.after_tokens:
                if held and plan.delivery is not Delivery.NORMAL:
                    await stream.write(b"".join(held))
                    held.clear()
                await self._strike(job)
            held.append(event)
            if len(held) >= per_write:
                await job.pace.reach(place, job.begun_s, clock)
                await stream.write(b"".join(held))
                held.clear()
            if not count:
                job.first_token_s = clock()
        if job.asked.include_usage:
            held.append(job.wire.usage(job.generated_tokens))
        await stream.write(b"".join([*held, job.wire.closing(plan.choices)]))

    async def _strike(self, job: Job) -> None:
        await STRIKES[job.plan.delivery](job, self._service)

    def _count(self, job: Job) -> None:
        finished = Finished(
            finish_reasons=tuple(str(one[-1].finish_reason) for one in job.plan.choices),
            prompt_tokens=len(job.asked.prompt_ids),
            generation_tokens=job.generated_tokens,
            max_tokens=job.asked.max_tokens,
            queued_s=job.begun_s - job.arrived_s,
            first_token_s=job.first_token_s - job.arrived_s,
            whole_s=self._service.clock() - job.arrived_s,
        )
        self._service.metrics.count(finished)


def pace_of(plan: Plan, settings: SimSettings) -> Pace:
    """How fast an answer comes, and from where on it is a slow one."""
    slow_from = plan.after_tokens if plan.delivery is Delivery.SLOW else None
    return Pace(
        settings.time_to_first_token_s,
        settings.tokens_per_s,
        slow_from,
        settings.slow_tokens_per_s,
    )


def prompt_scores(asked: Asked, spec: FaultSpec | None, service: Service) -> Scored | None:
    """What the engine thinks of the prompt's tokens; a spoilt engine thinks nothing of them.

    Raises:
        ApiError: NaN cannot be written as JSON.
    """
    if asked.prompt_logprobs is None or asked.route is not Route.COMPLETIONS:
        return None
    if spec is None or service.faults[spec.fault].make is None:
        return service.scorer.score(asked.prompt_ids, asked.prompt_logprobs)
    if spec.fault == "nan":
        raise not_a_number()
    return service.scorer.broken(asked.prompt_ids)


def _whole_body(job: Job) -> bytes:
    if job.asked.logprobs is not None:
        steps = (one.step for choice in job.plan.choices for one in choice)
        if not all(step.is_finite for step in steps):
            raise not_a_number()
    body = job.wire.whole(job.plan.choices)
    return body[: len(body) // 2] if job.plan.delivery is Delivery.UNENDED else body


async def _error_stream(request: web.Request, error: ApiError) -> web.StreamResponse:
    stream = EventStream(request)
    await stream.write(error.event() + DONE)
    return stream.response


async def _torn_announcement(request: web.Request, _error: ApiError) -> web.StreamResponse:
    """Announce a response and break off, as vLLM does where it refuses late."""
    stream = EventStream(request)
    await stream.write(b"".join(b"event: %b\ndata: {}\n\n" % kind for kind in ANNOUNCING))
    if request.transport is not None:
        request.transport.abort()
    return stream.response


ANNOUNCING = (b"response.created", b"response.in_progress")
LATE_ERRORS = dict.fromkeys(Route, _error_stream) | {Route.RESPONSES: _torn_announcement}

Strike = Callable[[Job, Service], Awaitable[None]]


async def _nothing(_job: Job, _service: Service) -> None:
    """Deliver as planned."""


async def _hang(_job: Job, _service: Service) -> None:
    """Wait until the client leaves or the engine ends."""
    await asyncio.Event().wait()


async def _disconnect(job: Job, _service: Service) -> None:
    """Cut the connection without a word."""
    if job.request.transport is not None:
        job.request.transport.abort()
    raise ConnectionResetError("cut on request")


async def _exit(job: Job, service: Service) -> None:
    """The engine dies under all its requests, this one too."""
    service.engine.die()
    await _hang(job, service)


async def _server_error(_job: Job, _service: Service) -> None:
    raise internal_error()


async def _queue_full(_job: Job, service: Service) -> None:
    raise queue_full(service.engine.waiting)


async def _unended(_job: Job, _service: Service) -> None:
    raise UnendedError


STRIKES: dict[Delivery, Strike] = {
    Delivery.NORMAL: _nothing,
    Delivery.SLOW: _nothing,
    Delivery.HANG: _hang,
    Delivery.DISCONNECT: _disconnect,
    Delivery.EXIT: _exit,
    Delivery.SERVER_ERROR: _server_error,
    Delivery.QUEUE_FULL: _queue_full,
    Delivery.UNENDED: _unended,
}
