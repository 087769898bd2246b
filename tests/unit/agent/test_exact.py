"""Figures and log probabilities become one L3 conclusion for each answer."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from multidict import CIMultiDict

from gatemesh_agent.attribution import ClientRequest
from gatemesh_agent.collected import Collected
from gatemesh_agent.exact import ExactFigures, ExactReport, ExactTerms
from gatemesh_agent.gates.judgement import Judgement, passed, skipped
from gatemesh_agent.reporting import Life, Origin
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.traffic import Exchange
from gatemesh_agent.upstream import Order
from gatemesh_agent.wishes import NOTHING, Wish
from gatemesh_common.messages import CheckLevel, Outcome, Reason

LIFE = Life("engine-0", 1, None, numbered=True)
NAN = Judgement(CheckLevel.L3, Outcome.FAILED, Reason.NAN_LOGITS, hard=True)
NO_LOGPROBS = skipped(CheckLevel.L3, Reason.NO_LOGPROBS)
SOUND = {"step": 0, "entropy_nats": 1.0, "top1_p": 0.5, "variance": 1.0, "nan": 0, "pos_inf": 0}
DAMAGED = {**SOUND, "entropy_nats": None, "top1_p": None, "variance": None, "nan": 5}
ANSWERED = 12


class Kept(Collected):
    """Keeps everything."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[int, str, str]] = []
        self.skips: list[tuple[str, str]] = []

    def conclude(self, choice: int, judgement: Judgement, details: Any) -> None:
        """Keep it."""
        super().conclude(choice, judgement, details)
        self.told.append((choice, judgement.gate.value, judgement.outcome.value))

    def skip(self, level: CheckLevel, why: str) -> None:
        """Keep it."""
        self.skips.append((level.value, why))


class Sizes:
    """Remembers what it heard."""

    def __init__(self) -> None:
        self.heard: dict[str, int] = {}
        self.learnt: list[tuple[Life, str]] = []

    def size(self, model: str) -> int | None:
        """What was heard."""
        return self.heard.get(model)

    def hear(self, model: str, size: int) -> None:
        """Remember it."""
        self.heard[model] = size

    def learn(self, life: Life, model: str) -> None:
        """Remember it."""
        self.learnt.append((life, model))


class World:
    """An agent that watches one answer after the other."""

    def __init__(self, *, is_on: bool = True) -> None:
        self.timers: list[Callable[[], None]] = []
        self.sizes = Sizes()
        numbers = count()
        terms = ExactTerms(
            is_on=is_on,
            new_id=lambda: f"p{next(numbers)}",
            later=lambda _seconds, call: self.timers.append(call),
            clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            grace_s=0.5,
        )
        self.figures = ExactFigures(terms, self.sizes)
        self.kept = Kept()

    def ask(self, **body: Any) -> tuple[Wish, Exchange]:
        """Name a request, as it is sent."""
        raw = json.dumps({"model": "m", "messages": [], **body}).encode()
        asked = understand(Route.CHAT, raw)
        wish = self.figures.named(NOTHING, asked, LIFE)
        order = Order("POST", "/v1/chat/completions", CIMultiDict(), raw)
        request = ClientRequest(asked, Origin("r"), order)
        return wish, Exchange(request, LIFE, streamed=False, probe_id=wish.probe_id)

    def begin(self, **body: Any) -> tuple[str, Any, Callable[[], None]]:
        """Begin to judge an answer."""
        wish, exchange = self.ask(**body)
        report, ended = self.figures.watch(exchange, self.kept)
        report.count_tokens(ANSWERED)
        return wish.probe_id, report, ended

    def tell(self, probe_id: str, *lines: dict[str, Any]) -> None:
        """Let the plugin tell something."""
        named = [json.dumps({"probe_id": probe_id, **line}).encode() for line in lines]
        self.figures.take(b"\n".join(named))

    def wait(self) -> None:
        """Let the grace pass."""
        timers, self.timers[:] = list(self.timers), []
        for timer in timers:
            timer()


@pytest.fixture
def world() -> World:
    """A fresh one."""
    return World()


def test_with_both_the_log_probabilities_speak(world: World) -> None:
    """One conclusion, after the grace."""
    probe_id, report, ended = world.begin()
    world.tell(probe_id, SOUND)
    report.conclude(0, passed(CheckLevel.L1), {})
    report.conclude(0, passed(CheckLevel.L3), {})
    assert world.kept.told == [(0, "L1", "passed")]
    assert CheckLevel.L3 in report.judged
    ended()
    world.wait()
    assert world.kept.told[1:] == [(0, "L3", "passed")]


def test_without_log_probabilities_the_figures_speak(world: World) -> None:
    """And without either it is said that nothing came."""
    probe_id, report, ended = world.begin()
    world.tell(probe_id, SOUND)
    report.conclude(0, NO_LOGPROBS, {})
    ended()
    world.wait()
    assert (world.kept.told, world.kept.skips) == ([(0, "L3", "passed")], [])
    _, report, ended = world.begin()
    report.conclude(0, NO_LOGPROBS, {})
    ended()
    world.wait()
    assert world.kept.skips == [("L3", "no_figures")]


@pytest.mark.parametrize("when", ["before", "during", "late"])
def test_damage_is_reported_once(world: World, when: str) -> None:
    """Figures may come before the answer is judged, while it is, and a little after its end."""
    wish, exchange = world.ask()
    if when == "before":
        world.tell(wish.probe_id, DAMAGED)
    report, ended = world.figures.watch(exchange, world.kept)
    if when == "during":
        world.tell(wish.probe_id, DAMAGED)
    report.conclude(0, NO_LOGPROBS, {})
    ended()
    if when == "late":
        world.tell(wish.probe_id, DAMAGED)
    world.wait()
    assert world.kept.told == [(0, "L3", "failed")]
    assert report.failures[0].hard


def test_after_the_grace_nothing_counts(world: World) -> None:
    """The answer is concluded, and forgotten."""
    probe_id, report, ended = world.begin()
    report.conclude(0, passed(CheckLevel.L3), {})
    ended()
    world.wait()
    world.tell(probe_id, DAMAGED)
    assert world.kept.told == [(0, "L3", "passed")]


def test_a_failure_of_the_log_probabilities_stands_alone(world: World) -> None:
    """The figures add nothing to it."""
    probe_id, report, ended = world.begin()
    report.conclude(0, NAN, {})
    world.tell(probe_id, DAMAGED)
    report.conclude(0, NAN, {})
    ended()
    world.wait()
    assert world.kept.told == [(0, "L3", "failed")]


def test_each_choice_is_concluded(world: World) -> None:
    """Damage counts once, and the others keep what was made of them."""
    probe_id, report, ended = world.begin(n=2, temperature=1)
    world.tell(probe_id, DAMAGED)
    for choice in (0, 1):
        report.conclude(choice, passed(CheckLevel.L3), {})
    ended()
    world.wait()
    assert world.kept.told == [(0, "L3", "failed"), (1, "L3", "passed")]


def test_a_cut_answer_is_not_passed(world: World) -> None:
    """Its end proves nothing."""
    probe_id, report, ended = world.begin()
    world.tell(probe_id, SOUND)
    report.conclude(0, skipped(CheckLevel.L1, Reason.CUT_SHORT), {})
    report.conclude(0, NO_LOGPROBS, {})
    ended()
    world.wait()
    assert world.kept.told == [(0, "L1", "skipped"), (0, "L3", "skipped")]


def test_a_skip_of_the_agents_own_is_kept(world: World) -> None:
    """An answer that is too large is not judged by figures either, unless they prove damage."""
    _, report, ended = world.begin()
    report.skip(CheckLevel.L1, "too_large")
    report.skip(CheckLevel.L3, "too_large")
    ended()
    world.wait()
    assert world.kept.skips == [("L1", "too_large"), ("L3", "too_large")]


def test_silence_is_logged_once_for_each_life(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Only who asked can tell."""
    for _ in range(3):
        _, report, ended = world.begin()
        report.conclude(0, passed(CheckLevel.L3), {})
        ended()
    world.wait()
    assert [record.message for record in caplog.records] == ["plugin_silent"]


def test_a_life_that_refuses_ids_is_not_given_any(world: World) -> None:
    """Another one is."""
    wish, _ = world.ask()
    error = b"Unrecognized argument: vllm_xargs"
    assert world.figures.lessened(wish, LIFE, b"other") is None
    assert world.figures.lessened(wish, LIFE, error) == NOTHING
    assert world.figures.lessened(NOTHING, LIFE, error) is None
    assert world.ask()[0].probe_id == ""
    asked = understand(Route.CHAT, b'{"messages":[]}')
    assert world.figures.named(NOTHING, asked, "another").probe_id


@pytest.mark.parametrize("raw", [b"no json", b'{"vllm_xargs":{"probe_id":"own"}}'])
def test_some_requests_cannot_be_named(world: World, raw: bytes) -> None:
    """What is not understood, and what has an id of the client's."""
    assert world.figures.named(Wish(5), understand(Route.CHAT, raw), LIFE) == Wish(5)


def test_without_a_plugin_answers_are_judged_as_before() -> None:
    """Only the vocabulary is learnt."""
    world = World(is_on=False)
    wish, exchange = world.ask()
    report, ended = world.figures.watch(exchange, world.kept)
    ended()
    assert (wish, report) == (NOTHING, world.kept)
    assert world.sizes.learnt == [(LIFE, "m")]


def test_the_vocabulary_is_heard_of(world: World) -> None:
    """The width of the logits."""
    probe_id, report, _ = world.begin()
    world.tell(probe_id, {**SOUND, "vocab": 777})
    assert world.sizes.heard == {"m": 777}
    assert isinstance(report, ExactReport)


def test_the_end_of_the_agent_concludes_what_has_ended(world: World) -> None:
    """Nothing waits for a timer that never comes."""
    _, report, ended = world.begin()
    report.conclude(0, passed(CheckLevel.L3), {})
    ended()
    world.figures.settle_all()
    assert world.kept.told == [(0, "L3", "passed")]
    world.wait()
    assert len(world.kept.told) == 1
