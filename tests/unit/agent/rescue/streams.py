"""Streams, engines and clients without a network, for the tests of rescue."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from multidict import CIMultiDict

from gatemesh_agent.after import After, Answered
from gatemesh_agent.attribution import ClientRequest, Told
from gatemesh_agent.cases import Attempt, Case
from gatemesh_agent.errors import InstanceFailedError, StreamBrokenError
from gatemesh_agent.judging import AnswerJudge, Judging
from gatemesh_agent.reporting import Life, Origin, Reporter
from gatemesh_agent.requests import Asked, Route, decoding_of, understand
from gatemesh_agent.rescue.budget import RescueBudget
from gatemesh_agent.rescue.carrying import Rescuer
from gatemesh_agent.rescue.leaving import Leaving
from gatemesh_agent.rescue.refusals import refusal_of
from gatemesh_agent.rescue.running import Runner
from gatemesh_agent.rescue.story import Story, StreamFaultError
from gatemesh_agent.rescue.terms import RescueTerms
from gatemesh_agent.routing import Router, bootstrap
from gatemesh_agent.sse import DONE
from gatemesh_agent.telemetry import Telemetry
from gatemesh_agent.traffic import Exchange
from gatemesh_agent.upstream import Order
from gatemesh_agent.watchdog import Patience, Watch
from gatemesh_agent.wishes import Wish, Wishes
from gatemesh_common.messages import Message, Verdict

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HEAD = {"object": "chat.completion.chunk", "created": 1, "model": "m"}
TOP = (-0.2, -2.5, -3.0, -4.0)


def sse(fields: Mapping[str, Any]) -> bytes:
    """Write an event as engines do."""
    return b"data: " + json.dumps(fields, separators=(",", ":")).encode() + b"\n\n"


def figures(number: int) -> tuple[float, ...]:
    """Return the log probabilities of a healthy engine at a token; no two are alike."""
    return (TOP[0], *(value - number % 17 / 10 for value in TOP[1:]))


def entry(text: str, logprob: float | None, number: int) -> dict[str, Any]:
    """Return the log probabilities of a token of a healthy engine."""
    shown = figures(number)
    top = [{"token": f"token_id:{place}", "logprob": value} for place, value in enumerate(shown)]
    if logprob is not None:
        logprob = shown[0]
    return {
        "token": f"token_id:{number}",
        "logprob": logprob,
        "bytes": list(text.encode()),
        "top_logprobs": top,
    }


def event(
    text: str,
    *,
    finish: str | None = None,
    logprob: float | None = -0.2,
    number: int = 7,
    told: bool = True,
    name: str = "chatcmpl-1",
    **delta: Any,
) -> bytes:
    """Return one event of a chat."""
    choice = {
        "index": 0,
        "delta": {"content": text, **delta},
        "logprobs": {"content": [entry(text, logprob, number)]} if told else None,
        "finish_reason": finish,
    }
    return sse({"id": name, **HEAD, "choices": [choice]})


def opening(name: str = "chatcmpl-1") -> bytes:
    """Return the event that tells whose turn it is."""
    choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    return sse({"id": name, **HEAD, "choices": [choice]})


def spoken(text: str, *, finish: str | None = None, number: int = 9) -> bytes:
    """Return one event of a completion, as engines that go on by ids send it."""
    told = {
        "tokens": [f"token_id:{number}"],
        "token_logprobs": [TOP[0]],
        "top_logprobs": [
            {f"token_id:{place}": value for place, value in enumerate(figures(number))}
        ],
        "text_offset": [0],
    }
    choice = {"index": 0, "text": text, "logprobs": told, "finish_reason": finish}
    head = {"id": "cmpl-2", "object": "text_completion", "created": 2, "model": "m"}
    return sse({**head, "choices": [choice]})


def words(*said: str, **more: Any) -> bytes:
    """Return the events of several tokens, each with an id of its own."""
    return b"".join(event(text, number=100 + place, **more) for place, text in enumerate(said))


def bare(data: bytes) -> bytes:
    """Return events as a client gets them that asked for no log probabilities."""
    return b"\n".join(bare_line(line) for line in data.split(b"\n"))


def bare_line(line: bytes) -> bytes:
    """Return one line of them."""
    if not line.startswith(b"data: {"):
        return line
    fields = json.loads(line[6:])
    for choice in fields["choices"]:
        choice.update({"logprobs": None} if "logprobs" in choice else {})
    return b"data: " + json.dumps(fields, separators=(",", ":")).encode()


def text_of(data: bytes) -> str:
    """Return what a client reads."""
    events = [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: {")]
    choices = [choice for one in events for choice in one.get("choices", [])]
    return "".join(one.get("text") or one.get("delta", {}).get("content") or "" for one in choices)


def asking(route: Route = Route.CHAT, **body: Any) -> Asked:
    """Return a client's request."""
    prompt: dict[str, Any] = {"prompt": "Say"} if route is Route.COMPLETIONS else {}
    if route is Route.CHAT:
        prompt = {"messages": [{"role": "user", "content": "Say hi"}]}
    given = {"model": "m", "stream": True, "temperature": 0, **prompt, **body}
    return understand(route, json.dumps(given).encode())


def request_of(asked: Asked, tenant: str | None = None) -> ClientRequest:
    """Return it as the agent knows it."""
    order = Order("POST", str(asked.route), CIMultiDict(), asked.raw)
    decoding = decoding_of(asked.body or {})
    return ClientRequest(asked, Origin("R1", tenant=tenant, decoding=decoding), order)


@dataclass
class FakeClient:
    """Takes what it is sent."""

    sent: bytes = b""
    begun: bool = False
    ended: bool = False
    instance_id: str | None = None
    status: int = 0

    async def begin(
        self, status: int, _reason: Any, _headers: Any, instance_id: str, _: Any, **_extra: str
    ) -> None:
        """Take status and headers."""
        self.begun, self.status, self.instance_id = True, status, instance_id

    async def write(self, data: bytes) -> None:
        """Take a part."""
        self.sent += data
        await asyncio.sleep(0)

    async def end(self) -> None:
        """Take the end."""
        self.ended = True

    async def fail(self, status: int, body: bytes, instance_id: str | None = None) -> None:
        """Take an error."""
        self.begun, self.status, self.sent = True, status, body
        self.instance_id, self.ended = instance_id, True


class Script:
    """What one engine says, piece by piece: bytes, None for a silence, an error to end with."""

    def __init__(self, *pieces: bytes | Exception | None, status: int = 200) -> None:
        self.pieces = list(pieces)
        self.status = status
        self.is_stream = status == 200
        self.response = SimpleNamespace(reason="OK", headers=CIMultiDict())
        self.closed = False

    def close(self) -> None:
        """Take the end of interest in it."""
        self.closed = True

    async def first(self) -> bytes:
        """Return the first piece."""
        return await self.within(0.0) or b""

    async def within(self, _wait_s: float) -> bytes | None:
        """Return the next piece."""
        await asyncio.sleep(0)
        piece = self.pieces.pop(0) if self.pieces else b""
        if isinstance(piece, Exception):
            raise piece
        return piece

    async def whole(self, begun: bytes, _limit: int) -> tuple[bytes, bool]:
        """Return all of it."""
        pieces, self.pieces = self.pieces, []
        return begun + b"".join(each for each in pieces if isinstance(each, bytes)), True

    async def more(self) -> bytes:
        """Return the next piece, empty at the end."""
        return await self.within(0.0) or b""


TOKENS = json.dumps({"count": 3, "max_model_len": 100, "tokens": [1, 2, 3]}).encode()


@dataclass
class FakeUpstream:
    """Engines by address: what each answers, one script after the other."""

    scripts: dict[str, list[Any]] = field(default_factory=dict)
    tokenize: Script | None = None
    asked: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)

    @asynccontextmanager
    async def ask(self, base_url: str, order: Order) -> AsyncIterator[Script]:
        """Take a request."""
        yield await self.open(base_url, order)

    async def open(self, base_url: str, order: Order) -> Script:
        """Take a request."""
        self.asked.append((base_url, order.path, json.loads(order.body)))
        if order.path == "/tokenize":
            return self.tokenize or Script(TOKENS)
        script = self.scripts[base_url].pop(0)
        if isinstance(script, Exception):
            raise script
        assert isinstance(script, Script)
        return script

    def rest(self) -> tuple[str, dict[str, Any]]:
        """Return path and body of the last request for text."""
        return next((path, body) for _, path, body in reversed(self.asked) if path != "/tokenize")


class Bench:
    """A rescuer with engines `a`, `b` and `c`, and what it does."""

    def __init__(self, upstream: FakeUpstream | None = None, **terms: Any) -> None:
        self.published: list[Message] = []
        self.heard: list[tuple[str, str, Told]] = []
        self.answered: list[Answered] = []
        self.unheard: list[str] = []
        self.upstream = upstream or FakeUpstream()
        telemetry = Telemetry("agent-0", "p", NOON)
        self.reporter = Reporter("agent-0", "p", telemetry, self.published.append, lambda: NOON)
        view = bootstrap({name: f"http://{name}" for name in "abc"})
        self.router = Router(random.Random(1), 1.0, view)
        self.watch = Watch(Patience())
        self.judging = Judging(self.reporter, lambda: NOON, lambda _: None)
        given = {"stall_s": 30.0, "first_s": 30.0, **terms}
        self.terms = RescueTerms(**given)
        self.leaving = Leaving(
            self.router, self.watch, first_s=self.terms.first_s, stall_s=self.terms.stall_s
        )
        self.runner = self._runner()
        self.rescuer = Rescuer(
            router=self.router,
            upstream=self.upstream,  # type: ignore[arg-type]
            wishes=Wishes(4),
            reporter=self.reporter,
            watch=self.watch,
            runner=self.runner,
            leaving=self.leaving,
            terms=self.terms,
            reroutes=2,
            unheard=self.unheard.append,
            budget=RescueBudget(self.terms.per_minute, self.terms.tenant_share),
        )

    def _runner(self) -> Runner:
        after = After(
            lambda key, life, told: self.heard.append((key, life.instance_id, told)),
            readers=[self.answered.append],
        )
        return Runner(
            router=self.router,
            judging=self.judging,
            reporter=self.reporter,
            after=after,
            watch=self.watch,
            leaving=self.leaving,
            terms=self.terms,
            max_event_bytes=10**6,
        )

    @property
    def verdicts(self) -> list[Verdict]:
        """What was published against instances."""
        return [each for each in self.published if isinstance(each, Verdict)]

    def story(self, asked: Asked | None = None, *, tells: bool = False) -> Story:
        """Return the story of a client's stream."""
        client = FakeClient()
        case = Case(request_of(asked or asking()), client, time.monotonic())  # type: ignore[arg-type]
        case.tells_rescue = tells
        case.tried.append("a")
        return Story(case, refusal_of(case.request.asked))

    def attempt(self, story: Story, name: str = "a") -> Attempt:
        """Return it at one instance."""
        instance = self.router.view.find(name)
        assert instance is not None
        life = Life.of(instance, 1)
        wait = self.watch.begin(story.case.request, life, instance.base_url, time.monotonic())
        return Attempt(story.case, instance, life, Wish(4, by_id=True), wait)

    async def serve(self, script: Script, story: Story) -> FakeClient:
        """Run a stream that instance `a` begins, to its end by whoever."""
        try:
            first = await script.first()
            await self.rescuer.run(story, self.attempt(story), script, first)  # type: ignore[arg-type]
        except StreamFaultError as error:
            await self.rescuer.carry_on(error.story, error.fault)
        client: Any = story.case.client
        assert isinstance(client, FakeClient)
        return client


def judge_of(bench: Bench, story: Story) -> AnswerJudge:
    """Return the real gates for a story's first instance."""
    exchange = Exchange(story.case.request, Life("a", 0, None, numbered=True), streamed=True)
    return bench.judging.begin(exchange)


def broken() -> StreamBrokenError:
    """Return what reading from a dead engine raises."""
    return StreamBrokenError("broke off")


def unreachable() -> InstanceFailedError:
    """Return what asking a dead engine raises."""
    return InstanceFailedError("unreachable", "accepts no connection")


def whole(*texts: str) -> Sequence[bytes]:
    """Return a clean stream of so many tokens."""
    return [opening(), words(*texts[:-1]), event(texts[-1], finish="stop"), DONE]
