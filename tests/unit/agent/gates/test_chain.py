"""The gates together, over this project's own labelled cases."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gatemesh_agent.gates.chain import GateChain
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_common.messages import CheckLevel, Outcome, Reason

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "data" / "gates" / "own_cases.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


def calm(text: str) -> TokenStep:
    """Return a step of a sure engine."""
    return TokenStep(text, -0.1, (-0.1, -3.0, -4.0))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['kind']}")
def test_own_cases(case: Mapping[str, Any]) -> None:
    """Each labelled answer is judged as labelled, by L1 alone."""
    chain = GateChain(context_of(case["request"]))
    chain.feed_text(case["response"]["text"])
    response = case["response"]
    text, distribution = chain.finish(response["finish_reason"], response.get("tool_calls", ()))
    expected = Outcome.FAILED if case["expect"] == "fail" else Outcome.PASSED
    assert text.outcome is expected, text
    assert distribution.outcome is Outcome.SKIPPED


def test_each_gate_reports_once() -> None:
    """Two faults give two failures, and the end repeats them unchanged."""
    chain = GateChain(context_of({"messages": []}))
    (first,) = chain.feed_text("A vole.<|im_end|> And more of that text.")
    (second,) = chain.feed_steps([TokenStep("", None, (None,))])
    assert (first.gate, second.gate) == (CheckLevel.L1, CheckLevel.L3)
    assert chain.feed_text("<|im_end|>" * 9) == ()
    assert chain.feed_steps([TokenStep("", None, (None,))]) == ()
    assert chain.finish("stop") == (first, second)


def test_a_healthy_answer() -> None:
    """Both gates pass and the figures are those of the answer."""
    chain = GateChain(context_of({"messages": [], "temperature": 0}), 49_152)
    for word in ("The ", "tide ", "turns."):
        assert chain.feed_text(word) == ()
        assert chain.feed_steps([calm(word)]) == ()
    assert [judgement.outcome for judgement in chain.finish("stop")] == [Outcome.PASSED] * 2
    figures = chain.figures()
    assert figures.chars == 15
    assert figures.tokens == 3
    assert figures.mean_nll_nats == pytest.approx(0.1)
    assert 0 < figures.max_entropy_nats < 1


def test_a_cut_answer() -> None:
    """Neither gate vouches for what it did not see."""
    chain = GateChain(context_of({"messages": []}))
    chain.feed_text("The tide")
    chain.feed_steps([calm("The tide")])
    assert {judgement.reason for judgement in chain.finish(None)} == {Reason.CUT_SHORT}


def test_figures_without_steps() -> None:
    """No mean of nothing."""
    chain = GateChain(context_of({"messages": []}))
    assert chain.figures().mean_nll_nats is None
    chain.feed_text("of the sea and " * 15)
    assert 0.5 < chain.suspicion < 1
