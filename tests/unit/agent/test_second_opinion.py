"""Verdicts are withheld for a second opinion, but never for long and never twice."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from multidict import CIMultiDict

from gatemesh_agent.attribution import Accusation, ClientRequest, Finding, Told, request_key
from gatemesh_agent.judging import Judging
from gatemesh_agent.reporting import Life, Origin, Reporter
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.routing import Router, bootstrap
from gatemesh_agent.second_opinion import SecondOpinions, Terms
from gatemesh_agent.telemetry import Telemetry
from gatemesh_agent.upstream import Order
from gatemesh_agent.wishes import Wishes
from gatemesh_common.messages import Attribution, CheckLevel, Message, Reason, Verdict

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ASKED = understand(Route.CHAT, b'{"messages":[{"role":"user","content":"Say hi"}]}')
ORDER = Order("POST", "/v1/chat/completions", CIMultiDict(), ASKED.raw)
REQUEST = ClientRequest(ASKED, Origin("R1"), ORDER)
LIFE = Life("a", 0, None, numbered=True)
OTHER = Life("b", 0, None, numbered=True)
KEY = request_key(ASKED, ORDER.path)
BOTH = frozenset({CheckLevel.L1, CheckLevel.L3})
CLEAN = (
    b'{"choices":[{"index":0,"message":{"content":"Hi there."},"finish_reason":"stop","logprobs":'
    b'{"content":[{"token":"Hi there.","logprob":-0.1,"top_logprobs":[]}]}}]}'
)


class Engines:
    """Stands in for the other instances: says one thing, when it is let."""

    def __init__(self, status: int = 200, body: bytes = CLEAN) -> None:
        self.status = status
        self.body = body
        self.asked = 0
        self.may_answer = asyncio.Event()

    @asynccontextmanager
    async def ask(self, _base_url: str, _order: Order) -> AsyncIterator["Engines"]:
        """Take a request."""
        self.asked += 1
        await self.may_answer.wait()
        yield self

    async def first(self) -> bytes:
        """Return nothing yet."""
        return b""

    async def whole(self, _begun: bytes, _limit: int) -> tuple[bytes, bool]:
        """Return the answer."""
        return self.body, True


class Bench:
    """Second opinions, and what they publish."""

    def __init__(self, engines: Engines, instances: str = "ab", **terms: Any) -> None:
        self.published: list[Message] = []
        telemetry = Telemetry("agent-0", "p", NOON)
        reporter = Reporter("agent-0", "p", telemetry, self.published.append, lambda: NOON)
        view = bootstrap({name: f"http://{name}" for name in instances})
        self.opinions = SecondOpinions(
            router=Router(random.Random(1), 1.0, view),
            upstream=engines,  # type: ignore[arg-type]
            judging=Judging(reporter, lambda: NOON, lambda _: None),
            wishes=Wishes(20),
            publish=reporter.publish,
            terms=Terms(**terms),
        )

    async def rulings(self) -> list[Attribution]:
        """Return the attributions of what is published once nothing is withheld."""
        await self.opinions.settle()
        return [each.attribution for each in self.published if isinstance(each, Verdict)]


def accusation(life: Life = LIFE, *, hard: bool = True, **more: Any) -> Accusation:
    """Return a failure that is about to be reported."""
    verdict = Verdict(
        instance_id=life.instance_id,
        request_id="R1",
        timestamp=NOON,
        check_level=CheckLevel.L3,
        reason=Reason.NAN_LOGITS,
        hard=hard,
    )
    return Accusation(verdict=verdict, request=REQUEST, life=life, tokens=1, **more)


async def test_copies_share_one_try() -> None:
    """And the answer is remembered for those that come later."""
    engines = Engines()
    bench = Bench(engines)
    for _ in range(5):
        bench.opinions.accuse(accusation())
    engines.may_answer.set()
    assert await bench.rulings() == [Attribution.INSTANCE] * 5
    bench.opinions.accuse(accusation())
    assert len(await bench.rulings()) == 6
    assert engines.asked == 1


async def test_a_try_that_tells_nothing_is_not_repeated() -> None:
    """The verdict counts as it is."""
    engines = Engines(status=503, body=b"{}")
    engines.may_answer.set()
    bench = Bench(engines)
    bench.opinions.accuse(accusation())
    assert await bench.rulings() == [Attribution.UNKNOWN]
    assert engines.asked == 1


async def test_the_clients_own_retry_is_heard_first() -> None:
    """It gets a head start: nobody is asked twice."""
    engines = Engines()
    bench = Bench(engines)
    bench.opinions.accuse(accusation(retried=True))
    bench.opinions.hear(KEY, OTHER, Told(Finding.HARD, BOTH))
    assert await bench.rulings() == [Attribution.REQUEST]
    assert engines.asked == 0


async def test_an_answer_that_goes_on_elsewhere_is_the_second_opinion() -> None:
    """Nobody else is asked, unless it does not go on after all."""
    engines = Engines()
    engines.may_answer.set()
    bench = Bench(engines)
    bench.opinions.accuse(accusation(continued=True))
    bench.opinions.hear(KEY, OTHER, Told(Finding.CLEAN, BOTH, reach=9))
    assert await bench.rulings() == [Attribution.INSTANCE]
    assert engines.asked == 0
    refused = Bench(engines)
    refused.opinions.accuse(accusation(continued=True))
    refused.opinions.ask(KEY)
    assert await refused.rulings() == [Attribution.INSTANCE]
    assert engines.asked == 1


async def test_the_one_that_failed_second_is_not_accused_of_it() -> None:
    """When the request is at fault one verdict says so."""
    bench = Bench(Engines())
    bench.opinions.accuse(accusation(retried=True))
    bench.opinions.accuse(accusation(OTHER, retried=True, follows=True))
    assert await bench.rulings() == [Attribution.REQUEST]


async def test_what_is_no_instances_fault_may_be_no_verdict_at_all() -> None:
    """A refusal is worth a verdict only where another instance does not refuse."""
    engines = Engines(status=400, body=b'{"error":{"message":"bad","param":null}}')
    engines.may_answer.set()
    bench = Bench(engines)
    bench.opinions.accuse(accusation(hard=False, only_if_instance=True))
    assert await bench.rulings() == []


@pytest.mark.parametrize(("terms", "how"), [({"at_once": 0}, "no_budget"), ({}, "late")])
async def test_waiting_ends(terms: dict[str, Any], how: str) -> None:
    """Without budget at once, else in time."""
    bench = Bench(Engines(), wait_s=0.05, **terms)
    bench.opinions.accuse(accusation())
    assert await bench.rulings() == [Attribution.UNKNOWN]
    [verdict] = bench.published
    assert isinstance(verdict, Verdict)
    assert verdict.details["attributed_by"] == how
    await bench.opinions.stop()


async def test_tries_take_turns() -> None:
    """What finds no room waits for it, as long as its verdict may wait."""
    engines = Engines()
    bench = Bench(engines, at_once=1)
    asked = understand(Route.CHAT, b'{"messages":[{"role":"user","content":"Say ho"}]}')
    other = ClientRequest(asked, Origin("R2"), ORDER)
    bench.opinions.accuse(accusation())
    bench.opinions.accuse(replace(accusation(), request=other))
    await asyncio.sleep(0)
    assert engines.asked == 1
    engines.may_answer.set()
    assert await bench.rulings() == [Attribution.INSTANCE] * 2
    assert engines.asked == 2


async def test_stopping_lets_everything_go() -> None:
    """As it is."""
    bench = Bench(Engines())
    bench.opinions.accuse(accusation())
    await bench.opinions.stop()
    assert await bench.rulings() == [Attribution.UNKNOWN]


def other_request(number: int) -> ClientRequest:
    """Return a request of its own."""
    asked = understand(Route.CHAT, b'{"messages":[{"role":"user","content":"%d"}]}' % number)
    return replace(REQUEST, asked=asked, order=replace(ORDER, body=asked.raw))


@pytest.mark.parametrize(
    ("told", "last"),
    [(Finding.HARD, Attribution.REQUEST), (Finding.CLEAN, Attribution.UNKNOWN)],
)
async def test_others_of_their_kind_speak_for_those_that_nobody_is_asked_about(
    told: Finding, last: Attribution
) -> None:
    """Many different prompts that fail everywhere take no instance out; a sick one has no plea."""
    bench = Bench(Engines(), per_minute=0)
    for number in range(5):
        request = other_request(number)
        key = request_key(request.asked, request.order.path)
        bench.opinions.hear(key, OTHER, Told(told if number == 4 else Finding.HARD, BOTH))
        bench.opinions.accuse(replace(accusation(), request=request))
    bench.opinions.accuse(accusation())
    assert (await bench.rulings())[-1] is last
