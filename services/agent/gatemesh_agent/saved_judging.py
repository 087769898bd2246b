"""Runs the gates over answers that were saved. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gatemesh_agent.gates.chain import GateChain
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.plugged import Plugs
from gatemesh_agent.gates.pool_baseline import NO_BASELINE, PoolBaseline
from gatemesh_agent.gates.refusal import is_nan_refusal
from gatemesh_agent.judging import NAN_REFUSAL
from gatemesh_agent.reading import CallParts
from gatemesh_agent.saved import OK, SavedAnswer, SavedChoice
from gatemesh_common.gates import CUT_BY_LIMIT
from gatemesh_common.messages import Outcome


@dataclass(frozen=True, slots=True)
class Gates:
    """What the gates are given beside the answer."""

    vocab_size: int | None = None
    baseline: PoolBaseline = NO_BASELINE
    plugs: Plugs | None = None

    def open(self, request: Mapping[str, Any]) -> GateChain:
        """Return the gates of one choice."""
        context = context_of(request)
        plugged = self.plugs.open(request, context.prompt) if self.plugs else None
        return GateChain(context, self.vocab_size, baseline=self.baseline, plugged=plugged)


@dataclass(frozen=True, slots=True)
class Judged:
    """What the gates say of one choice."""

    choice: SavedChoice
    judgements: tuple[Judgement, ...]

    @property
    def failures(self) -> tuple[Judgement, ...]:
        """Those that are failures."""
        return tuple(each for each in self.judgements if each.outcome is Outcome.FAILED)


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """What the gates say of every choice of a saved answer."""

    answer: SavedAnswer
    choices: tuple[Judged, ...]

    @property
    def failed(self) -> bool:
        """True when a gate failed a choice."""
        return any(choice.failures for choice in self.choices)

    @property
    def judged(self) -> bool:
        """True when a gate could judge anything of it."""
        return any(
            each.outcome is not Outcome.SKIPPED
            for choice in self.choices
            for each in choice.judgements
        )


def judge_answer(answer: SavedAnswer, gates: Gates) -> JudgedAnswer:
    """Judge a saved answer as the agent would have judged it under way."""
    if answer.status != OK:
        refused = is_nan_refusal(answer.status, answer.body)
        proof = (Judged(SavedChoice(0), (NAN_REFUSAL,)),) if refused else ()
        return JudgedAnswer(answer, proof)
    return JudgedAnswer(
        answer, tuple(judge_choice(choice, gates.open(answer.request)) for choice in answer.choices)
    )


def judge_choice(choice: SavedChoice, chain: GateChain) -> Judged:
    """Feed one choice to its gates, piece by piece."""
    calls, other_output = CallParts(), False
    for reading in choice.readings:
        other_output |= reading.other_output or bool(reading.calls)
        calls.add(reading.calls)
        if reading.text:
            chain.feed_text(reading.text)
        if reading.steps:
            chain.feed_steps(reading.steps)
    reason = choice.finish_reason if calls.complete else None
    whole = calls.calls() if choice.finish_reason != CUT_BY_LIMIT else []
    return Judged(choice, chain.finish(reason, whole, other_output=other_output))
