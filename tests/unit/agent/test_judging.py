"""Judges conclude once for each gate of each choice."""

import gc
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from multidict import CIMultiDict

from gatemesh_agent.attribution import Accusation, ClientRequest
from gatemesh_agent.baselines import Baselines
from gatemesh_agent.collected import Collected
from gatemesh_agent.gates.judgement import Judgement, passed, skipped
from gatemesh_agent.gates.l2_perplexity import Usual
from gatemesh_agent.gates.l3_distribution import Follower
from gatemesh_agent.gates.pool_baseline import Metric
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.judging import AnswerJudge, Judging
from gatemesh_agent.measured import lean_of
from gatemesh_agent.reading import Part
from gatemesh_agent.reporting import Life, Origin, Reporter
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.telemetry import Telemetry
from gatemesh_agent.traffic import Exchange
from gatemesh_agent.upstream import Order
from gatemesh_common.messages import (
    Baseline,
    BaselineEntry,
    CheckLevel,
    Decoding,
    Message,
    Outcome,
    Reason,
    Verdict,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BASELINE = Baseline(
    timestamp=NOON,
    pool="p",
    model_version="m-1",
    version=1,
    entries=tuple(
        BaselineEntry(
            metric=metric,
            decoding=Decoding.UNKNOWN,
            script="latin",
            count=2_000,
            median=0.5,
            mad=0.1,
        )
        for metric in (Metric.NLL_WHOLE, Metric.NLL_16)
    ),
)
NAN = Judgement(CheckLevel.L3, Outcome.FAILED, Reason.NAN_LOGITS, hard=True)
BAD_TEXT = Judgement(CheckLevel.L1, Outcome.FAILED, Reason.CONTROL_CHARS)
REFUSAL = (
    b'{"error":{"message":"Out of range float values are not JSON compliant",'
    b'"type":"BadRequestError","param":null,"code":400}}'
)


class FakeChain:
    """Fails where the text or a step says so, and says it again at the end."""

    def __init__(self) -> None:
        self.keys = ((CheckLevel.L1, ""), (CheckLevel.L3, ""))
        self.found: list[Judgement] = []
        self.suspicion = 0.25
        self.running = {"L1": {"suspicion": 0.25}}
        self.usual: Usual | None = Usual(Decoding.GREEDY, "latin", {Metric.NLL_WHOLE: 0.5})

    def observe(self, follower: Follower) -> None:
        """Measure nothing, so there is nothing to show."""

    def feed_text(self, delta: str) -> Iterable[Judgement]:
        """Fail on an exclamation mark."""
        return self._found([BAD_TEXT] if "!" in delta else [])

    def feed_steps(self, steps: Iterable[TokenStep]) -> Iterable[Judgement]:
        """Fail on null."""
        return self._found([NAN for step in steps if step.chosen_logprob is None][:1])

    def finish(
        self, finish_reason: str | None, tool_calls: Any = (), *, other_output: bool = False
    ) -> Iterable[Judgement]:
        """Pass or skip what has not failed."""
        failed = {each.gate: each for each in self.found}
        for gate in (CheckLevel.L1, CheckLevel.L3):
            left = passed(gate) if finish_reason else skipped(gate, Reason.CUT_SHORT)
            yield failed.get(gate, left)

    def _found(self, judgements: list[Judgement]) -> list[Judgement]:
        self.found += judgements
        return judgements


class Log:
    """Keeps what it is told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[int, str, str]] = []
        self.skips: list[tuple[str, str]] = []
        self.details: list[Mapping[str, Any]] = []
        self.usual: list[Usual] = []
        self.tokens = 0
        self.failures: list[Judgement] = []
        self.judged: set[CheckLevel] = set()
        self.flagged: list[Judgement] = []

    def conclude(self, choice: int, judgement: Judgement, details: Mapping[str, Any]) -> None:
        """Keep it."""
        self.told.append((choice, judgement.gate.value, judgement.outcome.value))
        self.details.append(details)

    def skip(self, level: CheckLevel, why: str) -> None:
        """Keep it."""
        self.skips.append((level.value, why))

    def count_tokens(self, count: int) -> None:
        """Keep it."""
        self.tokens += count

    def add_usual(self, usual: Usual) -> None:
        """Keep it."""
        self.usual.append(usual)


def event(
    text: str, index: int = 0, logprob: float | None = -0.5, finish: str | None = None
) -> dict[str, Any]:
    """Return one streamed event."""
    entry: dict[str, Any] = {"token": text, "logprob": logprob, "top_logprobs": []}
    return {
        "choices": [
            {
                "index": index,
                "delta": {"content": text},
                "logprobs": {"content": [entry]},
                "finish_reason": finish,
            }
        ]
    }


@pytest.fixture
def log() -> Log:
    """Return a fresh log."""
    return Log()


@pytest.fixture
def judge(log: Log) -> AnswerJudge:
    """Return a judge with fake gates."""
    return AnswerJudge(FakeChain, log, lambda: NOON)


def test_the_time_of_the_gates_is_told_once() -> None:
    """At the end, all events together."""
    told: list[float] = []
    judge = AnswerJudge(FakeChain, Log(), lambda: NOON)
    judge.spent = told.append
    with judge:
        judge.take_event({"choices": []})
        assert told == []
    assert len(told) == 1
    assert told[0] > 0


def test_a_clean_answer_passes_each_gate_once(judge: AnswerJudge, log: Log) -> None:
    """And its tokens are counted as they come."""
    with judge:
        judge.take_event(event("a"))
        judge.take_event(event("b", finish="stop"))
        judge.take_event({"choices": [], "usage": {}})
    assert log.told == [(0, "L1", "passed"), (0, "L3", "passed")]
    assert log.tokens == 2


def test_a_failure_is_told_at_once_and_once(judge: AnswerJudge, log: Log) -> None:
    """The end repeats nothing."""
    judge.take_event(event("a", logprob=None))
    assert log.told == [(0, "L3", "failed")]
    assert log.details[0] == {"tokens": 1, "first_bad_token_at": NOON.isoformat()}
    judge.take_event(event("!", logprob=None))
    assert log.told == [(0, "L3", "failed"), (0, "L1", "failed")]
    assert "first_bad_token_at" not in log.details[1]
    judge.take_event(event("", finish="stop"))
    judge.end()
    assert len(log.told) == 2


def test_choices_are_judged_apart(judge: AnswerJudge, log: Log) -> None:
    """Interleaved in any order."""
    with judge:
        judge.take_event(event("!", index=1))
        judge.take_event(event("a", index=0))
        judge.take_event(event("", index=0, finish="stop"))
        judge.take_event(event("", index=1, finish="stop"))
    assert sorted(log.told) == [
        (0, "L1", "passed"),
        (0, "L3", "passed"),
        (1, "L1", "failed"),
        (1, "L3", "passed"),
    ]


def test_the_figures_of_an_answer_are_handed_on(judge: AnswerJudge, log: Log) -> None:
    """Once, when it is whole."""
    with judge:
        judge.take_event(event("a"))
        assert log.usual == []
        judge.take_event(event("b", finish="stop"))
        judge.take_event(event("", finish="stop"))
    assert [usual.script for usual in log.usual] == ["latin"]


def test_what_is_cut_short_is_skipped(judge: AnswerJudge, log: Log) -> None:
    """But what was proven before stays proven."""
    with judge:
        judge.take_event(event("!"))
    assert log.told == [(0, "L1", "failed"), (0, "L3", "skipped")]


def test_a_whole_answer_is_one_event(judge: AnswerJudge, log: Log) -> None:
    """Of all its choices."""
    answer = {
        "choices": [
            {"index": n, "message": {"content": "x"}, "logprobs": None, "finish_reason": "stop"}
            for n in range(2)
        ]
    }
    judge.take_event(answer)
    assert len(log.told) == 4


def test_giving_up_skips_what_is_open(judge: AnswerJudge, log: Log) -> None:
    """Once, and nothing passes afterwards."""
    judge.take_event(event("!"))
    judge.give_up("unreadable")
    judge.give_up("too_large")
    judge.take_event(event("a", finish="stop"))
    judge.end()
    assert log.told == [(0, "L1", "failed")]
    assert log.skips == [("L3", "unreadable")]


def test_giving_up_before_anything_counts_one_choice(judge: AnswerJudge, log: Log) -> None:
    """An answer nobody looked at is not silently fine."""
    judge.give_up("too_large")
    assert log.skips == [("L1", "too_large"), ("L3", "too_large")]


@pytest.mark.parametrize(
    "fields",
    [{}, {"choices": None}, {"choices": [5]}, {"choices": [{"index": "x"}]}, {"error": {}}],
)
def test_odd_events_are_no_answers(judge: AnswerJudge, log: Log, fields: dict[str, Any]) -> None:
    """They pass without a conclusion."""
    with judge:
        judge.take_event(fields)
    assert log.told == []


def judging(telemetry: Telemetry | None = None) -> tuple[Judging, list[Message]]:
    """Return the real gates and what they publish."""
    published: list[Message] = []
    telemetry = telemetry or Telemetry("agent-0", "p", NOON)
    reporter = Reporter("agent-0", "p", telemetry, published.append, lambda: NOON)
    baselines = Baselines("p")
    baselines.take(BASELINE)
    return Judging(reporter, lambda: NOON, lambda _: None, baselines=baselines), published


ASKED = understand(Route.CHAT, b'{"messages":[{"role":"user","content":"Say hi"}]}')
LIFE = Life("engine-0", 3, "m-1", numbered=True)


def exchange(*, streamed: bool = True) -> Exchange:
    """Return a request of a client at one life of an instance."""
    order = Order("POST", "/v1/chat/completions", CIMultiDict(), ASKED.raw)
    return Exchange(ClientRequest(ASKED, Origin("R1"), order), LIFE, streamed, 20)


class Eavesdropper:
    """Follows an answer."""

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.parts: list[tuple[int, str, float]] = []

    def follower(self, choice: int) -> Follower:
        """Keep what each step measured."""
        return lambda _step, found: self.steps.append(found.top)

    def hear(self, part: Part, suspicion: float) -> None:
        """Keep what was said."""
        self.parts.append((part.choice, part.reading.text, suspicion))


def test_a_listener_hears_what_is_judged() -> None:
    """Each step as it was measured, then each part; a text of before is only judged."""
    judging_, _ = judging()
    listener = Eavesdropper()
    with judging_.begin(exchange()) as judge:
        judge.listener = listener
        judge.resume("It was said ")
        judge.take_event(event("before."))
    assert listener.steps == [-0.5]
    assert [each[:2] for each in listener.parts] == [(0, "before.")]
    assert judge.first.text == "before."


def test_an_ended_judge_needs_no_collector(log: Log) -> None:
    """A listener knows its judge: held by each other, hundreds of streams would stay in memory."""
    judge = AnswerJudge(FakeChain, log, lambda: NOON)
    listener = Eavesdropper()
    vars(listener)["judge"] = judge
    judge.listener = listener
    gone = weakref.ref(judge)
    gc.disable()
    try:
        with judge:
            judge.take_event(event("a"))
        del judge, listener
        assert gone() is None
    finally:
        gc.enable()


def test_something_no_gate_sees_may_be_held_against_an_answer(judge: AnswerJudge, log: Log) -> None:
    """As a failure of its first choice."""
    with judge:
        judge.object(BAD_TEXT)
        judge.take_event(event("a", finish="stop"))
    assert [each for each in log.told if each[1] == "L1"] == [(0, "L1", "failed")]


def test_a_nan_refusal_is_proof() -> None:
    """Other refusals are not."""
    judging_, published = judging()
    assert judging_.take_refusal(400, REFUSAL, exchange(streamed=False))
    assert not judging_.take_refusal(400, b'{"error":{"message":"bad"}}', exchange())
    [verdict] = published
    assert isinstance(verdict, Verdict)
    assert (verdict.reason, verdict.hard, verdict.incarnation) == (Reason.NAN_LOGITS, True, 3)
    assert verdict.details["first_bad_token_at"] == NOON.isoformat()


def test_the_real_gates_see_nan_in_a_stream() -> None:
    """And the verdict says that it was one."""
    judging_, published = judging()
    with judging_.begin(exchange()) as judge:
        judge.take_event(event("Hello", logprob=None))
        assert len(published) == 1
    [verdict] = published
    assert isinstance(verdict, Verdict)
    assert verdict.details["stream"] is True


@pytest.mark.parametrize(("reason", "failures"), [("length", 0), ("tool_calls", 1)])
def test_a_call_that_the_token_limit_cut_is_not_damaged(reason: str, failures: int) -> None:
    """Torn arguments are a fault only where the engine says that they are whole."""
    judging_, published = judging()
    call = {"index": 0, "function": {"name": "f", "arguments": '{"city": "Pa'}}
    fields = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": reason}]}
    with judging_.begin(exchange()) as judge:
        judge.take_event(fields)
    assert len(published) == failures


def test_probes_only_want_the_failures() -> None:
    """Nothing of a probe is traffic."""
    judging_, published = judging()
    answer = event("Hi there.", finish="stop")
    assert judging_.failures_of(ASKED, answer, 20) == []
    [failure] = judging_.failures_of(ASKED, event("Hi.", logprob=None, finish="stop"), 20)
    assert failure.reason is Reason.NAN_LOGITS
    assert published == []
    collected = Collected()
    collected.skip(CheckLevel.L1, "x")
    collected.count_tokens(1)
    collected.add_usual(Usual(Decoding.GREEDY, "latin", {}))
    assert collected.failures == []


def test_failures_go_where_whose_fault_they_are_is_found_out() -> None:
    """With what a second opinion needs to know."""
    judging_, published = judging()
    accused: list[Accusation] = []
    judging_.accuse = accused.append
    with judging_.begin(exchange()) as judge:
        judge.take_event(event("Hello"))
        judge.take_event(event("Hello", logprob=None))
        assert judge.failures[0].reason is Reason.NAN_LOGITS
    assert published == []
    assert (accused[0].tokens, accused[0].life, accused[0].request.asked) == (2, LIFE, ASKED)
    assert (judge.progress, judge.first.text, judge.given_up) == (2, "HelloHello", False)


PASSAGE = """The tide turns twice a day because the moon pulls at the sea and the earth spins below
it, so that a harbour which lies dry at noon may float its boats again before the evening
comes"""
WORDS = PASSAGE.split()


def feed(judging_: Judging, logprob: float, prompt: str = "f") -> None:
    """Have an answer of equally surprising tokens come in."""
    base = exchange()
    origin = replace(base.request.origin, prompt_fingerprint=prompt)
    asked = replace(base, request=replace(base.request, origin=origin))
    with judging_.begin(asked) as judge:
        for word in WORDS:
            judge.take_event(event(f"{word} ", logprob=logprob))
        judge.take_event(event(".", logprob=logprob, finish="stop"))


def test_l2_measures_by_the_baseline_of_the_model_version() -> None:
    """The verdict says by which figures."""
    judging_, published = judging()
    feed(judging_, -2.5)
    [verdict] = published
    assert isinstance(verdict, Verdict)
    assert (verdict.check_level, verdict.reason) == (CheckLevel.L2, Reason.PERPLEXITY_SPIKE)
    assert {"metric", "figure", "median", "mad", "window"} <= set(verdict.details)


def test_a_life_that_leans_is_reported_by_distinct_prompts() -> None:
    """And no longer adds to the baseline."""
    telemetry = Telemetry("agent-0", "p", NOON)
    judging_, published = judging(telemetry)
    for number in range(14):
        feed(judging_, -0.95, f"prompt {number}")
    verdicts = [each for each in published if isinstance(each, Verdict)]
    assert {verdict.reason for verdict in verdicts} == {Reason.DRIFT}
    assert len({verdict.prompt_fingerprint for verdict in verdicts}) == len(verdicts) >= 4
    kept = telemetry.of("engine-0", 3).sketches
    assert kept["nll_whole", Decoding.UNKNOWN, "latin"].count == 14 - len(verdicts)


SPIKE = Verdict(
    timestamp=NOON,
    instance_id="engine-0",
    request_id="R1",
    check_level=CheckLevel.L2,
    reason=Reason.PERPLEXITY_SPIKE,
    model_version="m-1",
)
DRIFT = SPIKE.model_copy(
    update={"reason": Reason.DRIFT, "details": {"metric": "nll_whole", "direction": 1}}
)


@pytest.mark.parametrize(
    ("accused", "logprob", "reasons"),
    [
        (SPIKE, -2.5, {Reason.PERPLEXITY_SPIKE}),
        (SPIKE, -0.9, set()),
        (DRIFT, -0.9, set()),
        (DRIFT, -0.1, set()),
        (None, -2.5, set()),
    ],
)
def test_a_second_answer_is_measured_and_leaves_no_trace(
    accused: Verdict | None, logprob: float, reasons: set[Reason]
) -> None:
    """By the same baseline; how it leans is only noted."""
    telemetry = Telemetry("agent-0", "p", NOON)
    judging_, published = judging(telemetry)
    content = [{"token": f"{word} ", "logprob": logprob, "top_logprobs": []} for word in WORDS]
    choice = {
        "message": {"content": " ".join(WORDS) + "."},
        "logprobs": {"content": content},
        "finish_reason": "stop",
    }
    noted = None if accused is None else lean_of(accused)
    judge = judging_.judged(ASKED, {"choices": [choice]}, 20, accused, noted)
    if noted is not None:
        assert noted.score is not None
        assert noted.score * (-0.5 - logprob) > 0
    assert {failure.reason for failure in judge.failures} == reasons
    assert (CheckLevel.L2 in judge.judged) is (accused is not None)
    assert published == []
    assert telemetry.roll(NOON, {}) == []


def test_figures_of_a_failed_answer_are_left_out() -> None:
    """Whichever gate failed it."""
    telemetry = Telemetry("agent-0", "p", NOON)
    judging_, published = judging(telemetry)
    with judging_.begin(exchange()) as judge:
        for word in WORDS:
            judge.take_event(event(f"{word} "))
        judge.take_event(event("<|im_end|>", finish="stop"))
    assert len(published) == 1
    assert telemetry.of("engine-0", 3).sketches == {}
