"""The gates together, over this project's own labelled cases."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gatemesh_agent.gates.chain import GateChain
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.pool_baseline import Metric, PoolBaseline
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_common.messages import BaselineEntry, CheckLevel, Decoding, Outcome, Reason

FOLDER = Path(__file__).parents[3] / "data" / "gates"
CASES = [
    json.loads(line)
    for name in ("own", "second", "third", "fourth", "alarm")
    for line in (FOLDER / f"{name}_cases.jsonl").read_text(encoding="utf-8").splitlines()
]
KNOWN_ALARMS = {"second-278"}
"""A quotation that only a reader of the book expects: one line, twelve times."""


MISSED_BY_L1 = {
    # Damage that only a model of the language or another answer can see.
    *("third-061", "third-093", "third-121", "third-180", "third-184", "third-210", "third-221"),
    *("third-318", "third-401", "third-408", "third-004", "third-067", "third-233", "third-333"),
    *("third-235", "third-249", "third-328", "third-331", "third-357"),
    *("fourth-004", "fourth-011", "fourth-056", "fourth-076", "fourth-097"),
    # Rows that differ in one letter or a counted figure, as wanted tables do.
    *("third-157", "fourth-093", "fourth-099"),
    # A word or two behind the last stop, as those who chat leave them.
    *("third-304", "fourth-088"),
    # A last paragraph without a stop, as signatures and sources are.
    *("third-143", "fourth-044", "fourth-079"),
    # Half of the bytes were lost; tags of forums; patterns of signs; a prompt about languages.
    *("third-351", "fourth-069", "fourth-072", "fourth-086", "fourth-033"),
}
"""Broken, and known to pass; each leaves this list when a rule finds it."""


def calm(text: str) -> TokenStep:
    """Return a step of a sure engine."""
    return TokenStep(text, -0.1, (-0.1, -3.0, -4.0))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['kind']}")
def test_own_cases(case: Mapping[str, Any]) -> None:
    """Each labelled answer is judged as labelled, by L1 alone."""
    chain = GateChain(context_of(case["request"]))
    chain.feed_text(case["response"]["text"])
    response = case["response"]
    text, perplexity, distribution = chain.finish(
        response["finish_reason"], response.get("tool_calls", ())
    )
    fails = case["expect"] == "fail" and case["id"] not in MISSED_BY_L1
    fails = fails or case["id"] in KNOWN_ALARMS
    expected = Outcome.FAILED if fails else Outcome.PASSED
    assert text.outcome is expected, text
    assert {perplexity.outcome, distribution.outcome} == {Outcome.SKIPPED}


def test_each_gate_reports_once() -> None:
    """Two faults give two failures, and the end repeats them unchanged."""
    chain = GateChain(context_of({"messages": []}))
    (first,) = chain.feed_text("A vole.<|im_end|> And more of that text.")
    (second,) = chain.feed_steps([TokenStep("", None, (None,))])
    assert (first.gate, second.gate) == (CheckLevel.L1, CheckLevel.L3)
    assert chain.feed_text("<|im_end|>" * 9) == ()
    assert chain.feed_steps([TokenStep("", None, (None,))]) == ()
    assert chain.finish("stop")[::2] == (first, second)


def test_a_healthy_answer() -> None:
    """The gates pass, L2 has no baseline yet, and the surprisal is that of the answer."""
    chain = GateChain(context_of({"messages": [], "temperature": 0}), 49_152)
    words = ("The ", "tide ", "turns.") * 3
    for word in words:
        assert chain.feed_text(word) == ()
        assert chain.feed_steps([calm(word)]) == ()
    assert chain.usual is None
    reasons = [judgement.reason for judgement in chain.finish("stop")]
    assert reasons == [Reason.CLEAN, Reason.WARMING, Reason.CLEAN]
    assert chain.usual is not None
    assert (chain.usual.decoding, chain.usual.script) == (Decoding.GREEDY, "latin")
    assert chain.usual.values[Metric.NLL_WHOLE] == pytest.approx(0.1)


def test_l2_says_at_once_what_l3_measured_for_it() -> None:
    """A spike is told with the steps that prove it, before the answer ends."""
    entry = BaselineEntry(
        metric="nll_16", decoding=Decoding.GREEDY, script="latin", count=50, median=0.5, mad=0.1
    )
    context = context_of({"messages": [], "temperature": 0})
    chain = GateChain(context, 49_152, baseline=PoolBaseline.of([entry]))
    assert chain.feed_steps([calm("a ")] * 40) == ()
    odd = TokenStep("a ", -3.0, (-3.0, -3.1, -3.2))
    [found] = chain.feed_steps([odd] * 16)
    assert (found.gate, found.reason) == (CheckLevel.L2, Reason.PERPLEXITY_SPIKE)
    assert chain.finish("stop")[1] is found


def test_l2_goes_on_where_l3_has_failed() -> None:
    """Each gate says what it saw, so that the cheaper one is known to see it, too."""
    entry = BaselineEntry(
        metric="nll_whole", decoding=Decoding.GREEDY, script="latin", count=50, median=0.5, mad=0.1
    )
    chain = GateChain(
        context_of({"messages": [], "temperature": 0}), baseline=PoolBaseline.of([entry])
    )
    wrong = TokenStep("a ", -6.0, (-6.0, -0.05, -3.5))
    assert [found.gate for found in chain.feed_steps([wrong] * 20)] == [CheckLevel.L3]
    assert chain.finish("stop")[1].reason is Reason.PERPLEXITY_SPIKE


def test_a_cut_answer() -> None:
    """No gate vouches for what it did not see."""
    chain = GateChain(context_of({"messages": []}))
    chain.feed_text("The tide")
    chain.feed_steps([calm("The tide")])
    assert {judgement.reason for judgement in chain.finish(None)} == {Reason.CUT_SHORT}


def test_suspicion() -> None:
    """It grows before a loop is one."""
    chain = GateChain(context_of({"messages": []}))
    assert chain.suspicion == 0
    chain.feed_text("of the sea and " * 15)
    assert 0.5 < chain.suspicion < 1
