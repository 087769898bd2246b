"""Probe tickets: run the suite on an instance once for each, and report how it went."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson
from multidict import CIMultiDict

from gatemesh_agent.engine_errors import names_logprobs
from gatemesh_agent.errors import InstanceFailedError, InstanceSilentError, StreamBrokenError
from gatemesh_agent.gates.refusal import is_nan_refusal
from gatemesh_agent.judging import Judging
from gatemesh_agent.metrics import PROBES
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.routing import PoolView
from gatemesh_agent.stripping import as_object, choices_of, loads
from gatemesh_agent.suite import Answer, Prompt, Result, Suite, conclude
from gatemesh_agent.upstream import Order, Upstream
from gatemesh_common.clock import Clock
from gatemesh_common.messages import (
    CheckLevel,
    Decoding,
    Message,
    Outcome,
    ProbeTicket,
    Reason,
    RoutedInstance,
    Verdict,
    new_message_id,
)

log = logging.getLogger(__name__)

OK = 200
CLIENT_ERRORS = range(400, 500)
POLL_S = 0.25
LARGEST_ANSWER_BYTES = 8 * 2**20
REMEMBERED_TICKETS = 1000

NOT_HEALTHY = Result(
    passed=False,
    judged=True,
    share=0.0,
    threshold=0.0,
    details={"passed": 0, "total": 0, "failed": ["health"], "faults": {"health": "no 200 in time"}},
)


@dataclass(frozen=True, slots=True)
class Pace:
    """How probes are run."""

    parallel: int
    health_s: float
    answer_s: float
    top_logprobs: int
    api_key: str | None = field(default=None, repr=False)


class Prober:
    """Follows the routing view and works off its tickets, each once."""

    def __init__(
        self,
        *,
        agent_id: str,
        pool: str,
        suite: Suite,
        upstream: Upstream,
        judging: Judging,
        put: Callable[[Message], None],
        clock: Clock,
        pace: Pace,
    ) -> None:
        self._agent_id = agent_id
        self._pool = pool
        self._suite = suite
        self._upstream = upstream
        self._judging = judging
        self._put = put
        self._clock = clock
        self._pace = pace
        self._running: dict[str, asyncio.Task[None]] = {}
        self._done: dict[str, None] = {}

    def follow(self, view: PoolView) -> None:
        """Begin new tickets, and drop those that are no longer wanted."""
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
        log.info("probe_begun", extra=extra)
        begun_s = time.monotonic()
        try:
            result = await self._probe(instance)
        except Exception:
            # The ticket stays open: the next table, or another agent, brings it up again.
            log.exception("probe_failed_itself", extra=extra)
            self._running.pop(ticket.ticket_id, None)
            return
        self._finish(instance, ticket, result, time.monotonic() - begun_s)
        log.info("probe_ended", extra={**extra, "passed": result.passed, **result.details})
        if not result.judged:
            cure = "set GATEMESH_AGENT_PROBE_API_KEY, or a suite that these engines take"
            log.error("probe_refused", extra={**extra, "cure": cure})

    def _finish(
        self, instance: RoutedInstance, ticket: ProbeTicket, result: Result, took_s: float
    ) -> None:
        outcome, _ = conclusion_of(result)
        PROBES.labels(purpose=ticket.purpose, outcome=outcome).inc()
        self._done[ticket.ticket_id] = None
        while len(self._done) > REMEMBERED_TICKETS:
            self._done.pop(next(iter(self._done)))
        self._running.pop(ticket.ticket_id, None)
        self._put(self._verdict(instance, ticket, result, took_s))

    def _verdict(
        self, instance: RoutedInstance, ticket: ProbeTicket, result: Result, took_s: float
    ) -> Verdict:
        outcome, reason = conclusion_of(result)
        return Verdict(
            message_id=new_message_id(),
            timestamp=self._clock(),
            instance_id=instance.instance_id,
            pool=self._pool,
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
                "agent_id": self._agent_id,
                "ticket_id": ticket.ticket_id,
                "purpose": ticket.purpose,
                "suite_version": self._suite.version,
                "took_s": round(took_s, 3),
                **result.details,
            },
        )

    async def _probe(self, instance: RoutedInstance) -> Result:
        model = await self._wait_ready(instance.base_url)
        if model is None:
            return NOT_HEALTHY
        gate = asyncio.Semaphore(self._pace.parallel)

        async def answer(prompt: Prompt) -> Answer:
            async with gate:
                return await self._answer(instance.base_url, model, prompt)

        answers = await asyncio.gather(*(answer(prompt) for prompt in self._suite.prompts))
        return conclude(self._suite, model, tuple(answers))

    async def _wait_ready(self, base_url: str) -> str | None:
        """Return the model's name once the instance is up, None when it is not in time."""
        try:
            async with asyncio.timeout(self._pace.health_s):
                await self._healthy(base_url)
                status, body = await self._get(base_url, "/v1/models")
        except TimeoutError:
            return None
        return model_name(body) if status == OK else ""

    async def _healthy(self, base_url: str) -> None:
        while True:
            status, _ = await self._get(base_url, "/health")
            if status == OK:
                return
            await asyncio.sleep(POLL_S)

    async def _get(self, base_url: str, path: str) -> tuple[int, bytes]:
        return await self._exchange(base_url, Order("GET", path, self._headers()))

    def _headers(self) -> CIMultiDict[str]:
        key = self._pace.api_key
        return CIMultiDict({"Authorization": f"Bearer {key}"} if key else {})

    async def _exchange(self, base_url: str, order: Order) -> tuple[int, bytes]:
        """Return status and body; status 0 when the instance gave none."""
        try:
            async with self._upstream.ask(base_url, order) as reply:
                body, _ = await reply.whole(await reply.first(), LARGEST_ANSWER_BYTES)
                return reply.status, body
        except (InstanceFailedError, InstanceSilentError, StreamBrokenError):
            return 0, b""

    async def _answer(self, base_url: str, model: str, prompt: Prompt) -> Answer:
        count = self._pace.top_logprobs
        try:
            async with asyncio.timeout(self._pace.answer_s):
                body = request_body(model, prompt, count)
                status, reply = await self._exchange(base_url, chat_order(body, self._headers()))
                if status != OK and count and names_logprobs(reply):
                    body = request_body(model, prompt, 0)
                    status, reply = await self._exchange(
                        base_url, chat_order(body, self._headers())
                    )
        except TimeoutError:
            return Answer(prompt.id, matched=False, fault="no answer in time")
        return self._read(prompt, body, status, reply)

    def _read(self, prompt: Prompt, body: bytes, status: int, reply: bytes) -> Answer:
        if status != OK:
            fault = fault_of(status, reply)
            refused = fault is None and status in CLIENT_ERRORS
            return Answer(prompt.id, matched=False, fault=fault, refused=refused)
        try:
            fields = as_object(loads(reply))
        except ValueError:
            return Answer(prompt.id, matched=False, fault="unreadable")
        failures = self._judging.failures_of(understand(Route.CHAT, body), fields, 0)
        matched = prompt.matches(text_of(fields))
        return Answer(prompt.id, matched, failures[0].reason if failures else None)


def conclusion_of(result: Result) -> tuple[Outcome, Reason]:
    """Word a result; a suite that was refused as a whole has judged nothing."""
    if not result.judged:
        return Outcome.SKIPPED, Reason.PROBES_REFUSED
    if result.passed:
        return Outcome.PASSED, Reason.CLEAN
    return Outcome.FAILED, Reason.PROBES_FAILED


def fault_of(status: int, reply: bytes) -> str | None:
    """Name the fault of an answer other than 200; what the engine cannot do is none."""
    if is_nan_refusal(status, reply):
        return Reason.NAN_LOGITS
    if status in CLIENT_ERRORS:
        return None
    return f"status {status}" if status else "no answer"


def request_body(model: str, prompt: Prompt, top_logprobs: int) -> bytes:
    """Return the chat request of a prompt."""
    body: dict[str, object] = {
        "model": model,
        "messages": [{"role": "user", "content": prompt.text}],
        "max_tokens": prompt.max_tokens,
        "temperature": 0,
    }
    if prompt.json_object:
        body["response_format"] = {"type": "json_object"}
    if top_logprobs:
        body |= {"logprobs": True, "top_logprobs": top_logprobs}
    return orjson.dumps(body)


def chat_order(body: bytes, headers: CIMultiDict[str]) -> Order:
    """Return the request that asks an instance for a chat answer."""
    headers["Content-Type"] = "application/json"
    return Order("POST", str(Route.CHAT), headers, body)


def model_name(body: bytes) -> str:
    """Return the name of the first model that an instance lists, empty when it lists none."""
    try:
        listed = as_object(orjson.loads(body)).get("data")
    except ValueError:
        return ""
    first = listed[0] if isinstance(listed, list) and listed else None
    return str(first.get("id", "")) if isinstance(first, dict) else ""


def text_of(fields: dict[str, object]) -> str:
    """Return the text of an answer's first choice."""
    choices = choices_of(fields)
    message = choices[0].get("message") if choices else None
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else ""
