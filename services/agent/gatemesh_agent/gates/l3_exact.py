"""L3 by exact figures from inside the engine: judges one answer by its measured steps."""

import math
from collections import OrderedDict
from typing import NamedTuple

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import GATE_VERSION, Judgement, passed, skipped
from gatemesh_agent.gates.l3_distribution import (
    FLAT_STEPS,
    GREEDY_GAP_NATS,
    GREEDY_GAPS,
    SURPRISE_NATS,
    SURPRISE_STEPS,
    flat_limit,
    surprise_nats,
)
from gatemesh_agent.gates.windows import EntropyWindows, Excess
from gatemesh_common.messages import CheckLevel, Decoding, Outcome, Reason, Span

CLIP_NATS = 20.0
"""Surprisals count up to here, so that no single token decides."""
STEPS_KEPT = 16
"""Measured steps whose tokens may still be told."""


class ExactStep(NamedTuple):
    """What the engine itself measured of one step."""

    step: int
    entropy_nats: float | None
    """None where the logits give none."""
    top1_p: float | None
    variance: float | None
    """Of the surprisal."""
    nan: int
    pos_inf: int
    vocab_size: int | None = None


class ExactChoice(NamedTuple):
    """Which token one measured step took."""

    step: int
    chosen_logprob: float
    rank: int
    """0 for the likeliest."""


class ExactGate:
    """Judges one answer; reports a fault once, as soon as the figures prove it."""

    def __init__(
        self, context: RequestContext, vocab_size: int | None = None, *, choices: int = 1
    ) -> None:
        self._vocab_size = vocab_size
        self._windows = EntropyWindows(context, vocab_size)
        # The lines of several choices cannot be told apart: only proof of single steps counts.
        self._is_alone = choices == 1
        judged = self._is_alone and not context.reshaped
        self._greedy = judged and context.decoding is Decoding.GREEDY
        self._drawn_fairly = judged and (
            context.temperature is not None and 0 < context.temperature <= 1
        )
        self._steps: OrderedDict[int, ExactStep] = OrderedDict()
        self._flat = self._gaps = self._drawn = 0
        self._excess = self._variance = 0.0
        self._failure: Judgement | None = None
        self.measured = 0
        """Steps measured so far."""

    @property
    def failure(self) -> Judgement | None:
        """The failure that was proven, if any."""
        return self._failure

    def feed_step(self, step: ExactStep) -> Judgement | None:
        """Take the figures of a step; return the failure that they prove, once."""
        self.measured += 1
        if self._failure is not None:
            return None
        self._failure = self._damaged(step) or self._flatness(step) or self._window(step)
        self._steps[step.step] = step
        if len(self._steps) > STEPS_KEPT:
            self._steps.popitem(last=False)
        return self._failure

    def feed_choice(self, choice: ExactChoice) -> Judgement | None:
        """Take the token of a measured step; return the failure that it proves, once."""
        step = self._steps.pop(choice.step, None)
        if self._failure is not None or step is None:
            return None
        self._failure = self._wrong_best(step, choice) or self._surprise(step, choice)
        return self._failure

    def finish(self, *, whole: bool) -> Judgement:
        """Conclude; an answer that was cut short is not judged as a whole."""
        if self._failure is None and self.measured and self._flat == self.measured:
            self._failure = self._fail(
                Reason.FLAT_DISTRIBUTION, None, self._flat_limit, max(self._steps, default=0)
            )
        if self._failure is not None:
            return self._failure
        if not self.measured:
            return skipped(CheckLevel.L3, Reason.NO_LOGPROBS)
        return passed(CheckLevel.L3) if whole else skipped(CheckLevel.L3, Reason.CUT_SHORT)

    @property
    def _flat_limit(self) -> float:
        return flat_limit(self._vocab_size)

    def _damaged(self, step: ExactStep) -> Judgement | None:
        """Rule a: the logits hold NaN or infinity."""
        if not step.nan and not step.pos_inf:
            return None
        return self._fail(Reason.NAN_LOGITS, float(step.nan + step.pos_inf), 0.0, step.step)

    def _flatness(self, step: ExactStep) -> Judgement | None:
        """Rule b: no token is likely, at several measured steps in a row."""
        self._vocab_size = step.vocab_size or self._vocab_size
        entropy = step.entropy_nats
        if entropy is None:
            return None
        self._flat = self._flat + 1 if entropy >= self._flat_limit else 0
        if self._flat < FLAT_STEPS:
            return None
        return self._fail(Reason.FLAT_DISTRIBUTION, entropy, self._flat_limit, step.step)

    def _window(self, step: ExactStep) -> Judgement | None:
        """Rule b, soft: windows of measured steps; what lies between them is not seen."""
        if step.entropy_nats is None or not self._is_alone:
            return None
        found = self._windows.take(step.entropy_nats)
        return None if found is None else self._too_wide(found, step.step)

    def _too_wide(self, found: Excess, step: int) -> Judgement:
        return self._fail(found.reason, found.mean, found.limit, step, hard=False)

    def _wrong_best(self, step: ExactStep, choice: ExactChoice) -> Judgement | None:
        """Rule c at temperature 0: the token taken is far from the likeliest, again and again."""
        if not self._greedy or not choice.rank or not step.top1_p:
            return None
        gap = math.log(step.top1_p) - choice.chosen_logprob
        if gap <= GREEDY_GAP_NATS:
            return None
        self._gaps += 1
        if self._gaps < GREEDY_GAPS:
            return None
        return self._fail(Reason.WRONG_CHOICE, gap, GREEDY_GAP_NATS, step.step, hard=False)

    def _surprise(self, step: ExactStep, choice: ExactChoice) -> Judgement | None:
        """Rule c else: the tokens taken are too unlikely, all together, for fair draws.

        Clipping only lowers the mean, and drawing at a lower temperature, or from the likelier
        tokens only, makes great surprisals rarer still: the bound holds for all of them.
        """
        entropy, variance = step.entropy_nats, step.variance
        if not self._drawn_fairly or entropy is None or variance is None:
            return None
        self._drawn += 1
        self._excess += min(-choice.chosen_logprob, CLIP_NATS) - entropy
        self._variance += variance
        if self._excess <= 0.0 or self._drawn < SURPRISE_STEPS:
            return None
        score = surprise_nats(self._excess, self._variance, CLIP_NATS)
        if score <= SURPRISE_NATS:
            return None
        return self._fail(Reason.WRONG_CHOICE, score, SURPRISE_NATS, step.step, hard=False)

    def _fail(
        self, reason: Reason, score: float | None, limit: float, step: int, *, hard: bool = True
    ) -> Judgement:
        span = Span(token_start=step, token_end=step + 1)
        return Judgement(
            CheckLevel.L3, Outcome.FAILED, reason, hard, score, limit, span, GATE_VERSION
        )
