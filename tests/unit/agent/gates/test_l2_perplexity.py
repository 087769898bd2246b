"""L2 fails what is far off its pool's baseline, and skips what it cannot judge."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.chain import GateChain
from gatemesh_agent.gates.context import RequestContext, context_of
from gatemesh_agent.gates.drift import PoolDrift
from gatemesh_agent.gates.entropy import measure
from gatemesh_agent.gates.figures import ENTROPIES, SCRIPT_STEPS, SHORT_WINDOW, SHORTEST_STEPS
from gatemesh_agent.gates.l2_perplexity import LEAST_RANKS, PerplexityGate
from gatemesh_agent.gates.pool_baseline import WIDTHS, Metric, PoolBaseline
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_common.gates import Ending
from gatemesh_common.messages import BaselineEntry, CheckLevel, Decoding, Outcome, Reason
from gatemesh_common.sketches import Histogram, entry_of

STOP = Ending("stop")
MEDIANS = {
    Metric.NLL_16: 0.8,
    Metric.NLL_64: 0.6,
    Metric.NLL_WHOLE: 0.5,
    Metric.NLL_64_LOW: 0.4,
    Metric.ENTROPY_16: 0.7,
    Metric.ENTROPY_WHOLE: 0.65,
    Metric.TOP1_WHOLE: 0.7,
    Metric.ENTROPY_CAPPED: 0.5,
}


def entry(metric: Metric, **fields: object) -> BaselineEntry:
    """Return what is normal for greedy Latin answers."""
    base = {"metric": metric, "decoding": "greedy", "script": "latin", "count": 400}
    return BaselineEntry.model_validate(base | {"median": MEDIANS[metric], "mad": 0.1} | fields)


BASELINE = PoolBaseline.of([entry(metric) for metric in Metric])
SPIKE_16 = MEDIANS[Metric.NLL_16] + math.log(3)


def asking(**fields: object) -> RequestContext:
    """Return the context of a greedy request."""
    request = {"messages": [{"role": "user", "content": "Tell me about rivers."}], "temperature": 0}
    return context_of(request | fields)


def step(nll: float) -> TokenStep:
    """Return a step of some surprisal with one other likely token."""
    other = math.log1p(-math.exp(-max(nll, 0.001)))
    return TokenStep("word ", -nll, (-nll, other, -30.0))


def fed(
    nats: list[float], context: RequestContext | None = None, baseline: PoolBaseline = BASELINE
) -> PerplexityGate:
    """Return a gate that saw steps of these surprisals."""
    gate = PerplexityGate(context or asking(), baseline)
    for nll in nats:
        gate.follow(step(nll), measure(step(nll)))
    return gate


@pytest.mark.parametrize("ranks", [1, 3, LEAST_RANKS, 20])
def test_few_candidates_tell_no_entropy(ranks: int) -> None:
    """An engine that tells fewer than it was asked for would seem to be surer than its pool."""
    gate = PerplexityGate(asking(), BASELINE)
    one = TokenStep("word ", -0.5, (-0.5, *(-2.0 - rank for rank in range(ranks - 1))))
    for _ in range(70):
        gate.follow(one, measure(one))
    found = gate.figures.values().keys()
    assert Metric.NLL_WHOLE in found
    assert bool(ENTROPIES & found) is (ranks >= LEAST_RANKS)


def test_a_usual_answer_passes() -> None:
    """And may become part of the baseline."""
    gate = fed([0.5] * 70)
    assert gate.feed_steps([]) is None
    assert gate.finish(STOP).outcome is Outcome.PASSED
    assert gate.usual is not None
    assert gate.usual.values[Metric.NLL_WHOLE] == pytest.approx(0.5)


@pytest.mark.parametrize(("beyond", "failed"), [(-0.001, False), (0.001, True)])
def test_a_window_at_the_limit_and_past_it(beyond: float, failed: bool) -> None:  # noqa: FBT001
    """Three times the usual perplexity of the worst 16 tokens."""
    gate = fed([0.4] * 100 + [SPIKE_16 + beyond] * SHORT_WINDOW)
    found = gate.feed_steps([])
    assert (found is not None) is failed
    if found is not None:
        assert found.reason is Reason.PERPLEXITY_SPIKE
        assert not found.hard
        assert found.span is not None
        assert (found.span.token_start, found.span.token_end) == (100, 116)
        assert found.details["metric"] == "nll_16"
        assert found.details["median"] == MEDIANS[Metric.NLL_16]
        assert gate.feed_steps([]) is None
        assert gate.finish(STOP) is found
        assert gate.usual is None


def test_a_spike_at_the_very_start_waits_for_the_script() -> None:
    """And is told when that is known, or at the end of a shorter answer."""
    early = fed([4.0] * (SCRIPT_STEPS - 1))
    assert early.feed_steps([]) is None
    assert early.finish(STOP).reason is Reason.PERPLEXITY_SPIKE
    assert fed([4.0] * SCRIPT_STEPS).feed_steps([]) is not None


def test_the_whole_answer_is_judged_too() -> None:
    """Each window below its limit, the sum above."""
    found = fed([SPIKE_16 - 0.2] * 60).finish(STOP)
    assert (found.reason, found.details["metric"]) == (Reason.PERPLEXITY_SPIKE, "nll_whole")


def test_a_collapse_needs_many_answers() -> None:
    """Certainty that no answer of the pool ever had."""
    floor = tuple(0.4 + 0.02 * n for n in range(11))
    known = PoolBaseline.of([entry(Metric.NLL_WHOLE, count=5_000, quantiles=floor)])
    found = fed([0.01] * 64, baseline=known).finish(STOP)
    assert found.reason is Reason.PERPLEXITY_COLLAPSE
    assert fed([0.01] * 64).finish(STOP).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("nats", "fields", "ending", "reason"),
    [
        ([], {}, STOP, Reason.NO_LOGPROBS),
        ([0.5] * 20, {}, Ending(None), Reason.CUT_SHORT),
        ([9.0] * (SHORTEST_STEPS - 1), {}, STOP, Reason.TOO_SHORT),
        ([9.0] * 40, {"temperature": 0.7}, STOP, Reason.WARMING),
        ([9.0] * 40, {"temperature": 1.5}, STOP, Reason.NOT_COMPARABLE),
        ([9.0] * 40, {"logit_bias": {"5": 1}}, STOP, Reason.NOT_COMPARABLE),
        ([9.0] * 40, {"response_format": {"type": "json_object"}}, STOP, Reason.NOT_COMPARABLE),
    ],
)
def test_what_it_cannot_judge(
    nats: list[float], fields: dict[str, object], ending: Ending, reason: Reason
) -> None:
    """Is skipped for a reason, never passed."""
    gate = fed(nats, asking(**fields))
    assert gate.feed_steps([]) is None
    found = gate.finish(ending)
    assert (found.outcome, found.reason) == (Outcome.SKIPPED, reason)
    assert (gate.usual is None) is (reason is not Reason.WARMING)


@pytest.mark.parametrize(
    ("temperature", "script"), [(0.2, "cool"), (0.7, "warm"), (0.9, "hot"), (1.0, "hot")]
)
def test_drawn_answers_are_measured_by_band_of_temperature(temperature: float, script: str) -> None:
    """From 0.7 to 1 the surprisal doubles: one baseline for both would see nothing."""
    gate = fed([0.5] * 40, asking(temperature=temperature))
    gate.finish(STOP)
    assert gate.usual is not None
    assert gate.usual.script == f"latin~{script}"


def test_wanted_randomness_is_no_spike() -> None:
    """Each digit is as surprising as it should be."""
    random_digits = asking(messages=[{"role": "user", "content": "Give me 64 random hex digits."}])
    assert fed([2.7] * 64, random_digits).finish(STOP).outcome is Outcome.PASSED


def test_a_drifting_life_fails_what_leans_with_it() -> None:
    """No answer alone is far off; together they are."""
    life = PoolDrift().of("a")
    reasons = []
    for at in range(12):
        gate = PerplexityGate(asking(), BASELINE, life, f"p{at}")
        for _ in range(40):
            gate.follow(step(0.9), measure(step(0.9)))
        found = gate.finish(STOP)
        assert gate.finish(STOP) is found
        reasons.append(found.reason)
    tripped = reasons.index(Reason.DRIFT)
    assert 3 <= tripped < 10
    assert set(reasons[tripped:]) == {Reason.DRIFT}
    assert life.answers == 12
    assert {"metric", "figure", "median", "mad", "direction", "answers"} <= set(found.details)
    assert gate.usual is None


def test_a_life_off_its_baseline_adds_nothing_to_it() -> None:
    """Not even its usual answers."""
    life = PoolDrift().of("a")
    for at in range(40):
        gate = PerplexityGate(asking(), BASELINE, life, f"p{at}")
        for _ in range(40):
            gate.follow(step(0.9), measure(step(0.9)))
        gate.finish(STOP)
    gate = PerplexityGate(asking(), BASELINE, life, "another")
    for _ in range(40):
        gate.follow(step(0.45), measure(step(0.45)))
    assert gate.finish(STOP).outcome is Outcome.PASSED
    assert gate.usual is None


@given(seed=st.integers(0, 10_000), cuts=st.lists(st.integers(0, 120), max_size=12))
def test_how_the_stream_was_cut_does_not_matter(seed: int, cuts: list[int]) -> None:
    """One judgement for every split."""
    rng = random.Random(seed)
    level = rng.choice((0.4, 1.4, 2.2))
    steps = [step(rng.expovariate(1 / level)) for _ in range(120)]

    def judged(edges: list[int]) -> object:
        chain = GateChain(asking(), baseline=BASELINE)
        for begin, end in zip([0, *edges], [*edges, len(steps)], strict=True):
            chain.feed_steps(steps[begin:end])
        return next(found for found in chain.finish("stop") if found.gate is CheckLevel.L2)

    assert judged(sorted(cuts)) == judged([]) == judged(list(range(1, 120)))


def test_false_alarms_of_single_answers() -> None:
    """At most one answer in a thousand of the kind that the baseline was learnt from."""
    rng = random.Random(11)

    def answer() -> PerplexityGate:
        gate = PerplexityGate(asking(), baseline)
        level = rng.gammavariate(6, 0.08)
        for _ in range(24):
            nll = rng.expovariate(1 / level)
            gate.follow(step(nll), measure(step(nll)))
        return gate

    baseline = PoolBaseline()
    histograms = {metric: Histogram(WIDTHS[metric]) for metric in Metric}
    for _ in range(300):
        for metric, value in answer().figures.values().items():
            histograms[metric].add(value)
    entries = [entry_of(m, Decoding.GREEDY, "latin", h) for m, h in histograms.items()]
    baseline = PoolBaseline.of([found for found in entries if found])
    alarms = sum(answer().finish(STOP).outcome is Outcome.FAILED for _ in range(3_000))
    assert alarms <= 3
