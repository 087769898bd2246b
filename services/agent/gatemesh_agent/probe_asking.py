"""Asking one instance one probe, and reading what comes back."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import orjson
from multidict import CIMultiDict

from gatemesh_agent.engine_errors import NO_ROOM, names_logprobs
from gatemesh_agent.errors import InstanceFailedError, InstanceSilentError, StreamBrokenError
from gatemesh_agent.gates.refusal import is_nan_refusal
from gatemesh_agent.judging import Judging
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.stripping import as_object, choices_of, loads
from gatemesh_agent.suite import Answer, Asking, Turn, Way
from gatemesh_agent.upstream import Order, Upstream
from gatemesh_common.messages import Reason

OK = 200
CLIENT_ERRORS = range(400, 500)
UNKNOWN_FIELDS = (400, 422)
"""Statuses of engines that take no field they do not know."""
POLL_S = 0.25
LARGEST_ANSWER_BYTES = 8 * 2**20
BEHIND_CLIENTS = 1
"""Of engines that schedule by priority: clients have 0, a lower one comes first."""
BUSY_REQUESTS = 8
"""So many requests under way double the time for an answer."""
MOST_TIMES = 4.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How probes are run."""

    parallel: int
    health_s: float
    answer_s: float
    top_logprobs: int
    api_key: str | None = field(default=None, repr=False)
    per_min: int = 12
    """Suites per minute on one instance."""


@dataclass(frozen=True, slots=True)
class ProbeWish:
    """What a request asks beyond its prompt; taken back when the engine does not know it."""

    top_logprobs: int
    extras: bool = True
    """Priority and salt, which only some engines know."""


class Asker:
    """Sends probes to instances."""

    def __init__(
        self,
        upstream: Upstream,
        judging: Judging,
        pace: Pace,
        turns: Sequence[Turn],
        in_flight: Callable[[str], int],
    ) -> None:
        self._upstream = upstream
        self._judging = judging
        self._pace = pace
        self._turns = turns
        self._in_flight = in_flight

    async def wait_ready(self, base_url: str, longest_s: float) -> str | None:
        """Return the model's name once the instance is up, None when it is not in time."""
        try:
            async with asyncio.timeout(longest_s):
                await self._healthy(base_url)
                status, body = await self._get(base_url, "/v1/models")
        except TimeoutError:
            return None
        return model_name(body) if status == OK else ""

    async def ask(self, instance_id: str, base_url: str, model: str, asking: Asking) -> Answer:
        """Return what came of one asking; a busy instance gets more time."""
        answer_s = self._pace.answer_s * more_time(self._in_flight(instance_id))
        name, way = asking.prompt.id, asking.way
        try:
            async with asyncio.timeout(answer_s):
                body, status, reply = await self._send(base_url, model, asking)
        except TimeoutError:
            return Answer(name, matched=False, fault="no answer in time", way=way)
        if status in NO_ROOM:
            return Answer(name, matched=False, busy=True, way=way)
        return self._read(asking, body, status, reply)

    async def _send(self, base_url: str, model: str, asking: Asking) -> tuple[bytes, int, bytes]:
        wishes = ProbeWish(self._pace.top_logprobs)
        while True:
            body = request_body(model, asking, wishes, self._turns)
            status, reply = await self._exchange(base_url, chat_order(body, self._headers()))
            fewer = fewer_wishes(wishes, asking.way, status, reply)
            if fewer is None:
                return body, status, reply
            wishes = fewer

    def _read(self, asking: Asking, body: bytes, status: int, reply: bytes) -> Answer:
        prompt, way = asking.prompt, asking.way
        if status != OK:
            fault = fault_of(status, reply)
            refused = fault is None and status in CLIENT_ERRORS
            return Answer(prompt.id, matched=False, fault=fault, refused=refused, way=way)
        try:
            fields = as_object(loads(reply))
        except ValueError:
            return Answer(prompt.id, matched=False, fault="unreadable", way=way)
        failures = self._judging.failures_of(understand(Route.CHAT, body), fields, 0)
        matched = prompt.matches(text_of(fields))
        return Answer(prompt.id, matched, failures[0].reason if failures else None, way=way)

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


def more_time(in_flight: int) -> float:
    """Return by how much longer a probe may take beside so many requests."""
    return min(1.0 + in_flight / BUSY_REQUESTS, MOST_TIMES)


def fewer_wishes(wishes: ProbeWish, way: Way, status: int, reply: bytes) -> ProbeWish | None:
    """Return what to ask instead of a refused request; None when the answer stands."""
    if status == OK or is_nan_refusal(status, reply):
        return None
    if wishes.top_logprobs and names_logprobs(reply):
        return ProbeWish(0, wishes.extras)
    # Without its salt a fresh asking would be a cached one.
    if wishes.extras and status in UNKNOWN_FIELDS and way is not Way.FRESH:
        return ProbeWish(wishes.top_logprobs, extras=False)
    return None


def fault_of(status: int, reply: bytes) -> str | None:
    """Name the fault of an answer other than 200; what the engine cannot do is none."""
    if is_nan_refusal(status, reply):
        return Reason.NAN_LOGITS
    if status in CLIENT_ERRORS:
        return None
    return f"status {status}" if status else "no answer"


def request_body(
    model: str, asking: Asking, wishes: ProbeWish, turns: Sequence[Turn] = ()
) -> bytes:
    """Return the chat request of an asking."""
    prompt = asking.prompt
    before = () if asking.way is Way.PLAIN else turns
    body: dict[str, object] = {
        "model": model,
        "messages": [*conversation(before), {"role": "user", "content": prompt.text}],
        "max_tokens": prompt.max_tokens,
        "temperature": 0,
    }
    if prompt.json_object:
        body["response_format"] = {"type": "json_object"}
    if wishes.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": wishes.top_logprobs}
    if wishes.extras:
        body["priority"] = BEHIND_CLIENTS
    if wishes.extras and asking.way is Way.FRESH:
        body["cache_salt"] = uuid4().hex
    return orjson.dumps(body)


def conversation(turns: Sequence[Turn]) -> Iterator[dict[str, str]]:
    """Return the messages of finished turns."""
    for turn in turns:
        yield {"role": "user", "content": turn.question}
        yield {"role": "assistant", "content": turn.answer}


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
