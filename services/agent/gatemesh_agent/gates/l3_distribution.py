"""L3, token distribution: judges the log probabilities of one choice while they arrive."""

import math
from collections.abc import Callable, Iterable, Sequence

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.entropy import Measure, measure
from gatemesh_agent.gates.judgement import GATE_VERSION, Judgement, passed, skipped
from gatemesh_agent.gates.repetition import LoopLimits, PeriodTracker
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.gates.windows import EntropyWindows, Excess
from gatemesh_common.gates import Ending
from gatemesh_common.messages import CheckLevel, Decoding, Outcome, Reason, Span

IMPOSSIBLE = -1000.0
"""No token below this is likeliest: the figures are clamps of minus infinity."""
POSITIVE = 0.02
MASS_LIMIT = 1.05
FLAT_NATS = 10.0
FLAT_SHARE = 0.85
"""Of `ln V`, since 10 nats is out of reach of a small vocabulary."""
FLAT_STEPS = 2
EQUAL_SPREAD = 1e-3
EQUAL_TOP = -6.0
EQUAL_RANKS = 5
EQUAL_STEPS = 3
SAME_RANKS = 8
SAME_STEPS = 4
"""Figures that repeat exactly, step after step. Source: never twice in 1,400 recorded answers of
healthy and damaged engines, but for flat ones."""
CLAMP = -100.0
"""Of a lower rank: a mask wrote it, and forced tokens look alike."""
GREEDY_GAP_NATS = 1.0
GREEDY_GAPS = 3
SURPRISE_NATS = 24.0
"""Chance below e^-24, by Freedman's inequality, that a healthy engine draws so unlikely a text."""
SURPRISE_STEPS = 16
QUIET_CLIPS = 0.999 * SURPRISE_NATS * 2.0 / 3.0
"""While the excess is at most so many times the largest clip, no variance makes it a surprise."""
LOCKED_TOP = -0.05
LOCKED_STEPS = 32
LOCKED_LOOK_STEPS = 8
LOCKED_SHARE = 0.6
"""Of the length at which L1 calls it a loop."""
LOCKED_CHARS = 1024


Follower = Callable[[TokenStep, Measure], None]
"""Takes in each step as it was measured, so that it need not be measured twice."""


class DistributionGate:
    """Judges one choice; reports a fault once, as soon as the figures prove it."""

    def __init__(
        self,
        context: RequestContext,
        vocab_size: int | None = None,
        follower: Follower | None = None,
    ) -> None:
        self._context = context
        self._follower = follower
        self._flat_limit = flat_limit(vocab_size)
        self._failure: Judgement | None = None
        self._foreign = False
        self._windows = EntropyWindows(context, vocab_size)
        self._same = 0
        self._last = (0.0, 0.0, 0.0)
        self._flat = self._equal = self._locked = self._gaps = 0
        self._locked_text = ""
        self._limits = LoopLimits(context)
        self._excess = self._variance = self._clip = 0.0
        self.tokens = 0
        """Steps seen."""
        self.max_entropy = 0.0
        """Largest lower bound of the entropy of a step, nats."""
        self._drawn_fairly = not context.reshaped and (
            context.temperature is not None and 0 < context.temperature <= 1
        )
        self._greedy = context.decoding is Decoding.GREEDY and not context.reshaped

    @property
    def failure(self) -> Judgement | None:
        """The failure that was reported, if any."""
        return self._failure

    def observe(self, follower: Follower) -> None:
        """Show each step to one more."""
        first = self._follower

        def both(step: TokenStep, found: Measure) -> None:
            if first is not None:
                first(step, found)
            follower(step, found)

        self._follower = both

    def feed_text(self, delta: str) -> None:
        """Text is not judged here: each step carries its own."""

    def feed_steps(self, steps: Iterable[TokenStep]) -> Judgement | None:
        """Take the next steps; return the failure that they prove, once."""
        proven: Judgement | None = None
        for step in steps:
            if self._failure is not None or self._foreign:
                self._pass_on(step)
            else:
                proven = self._failure = self._step(step)
            self.tokens += 1
        return proven

    def finish(self, ending: Ending) -> Judgement:
        """Conclude; what was never reported is not judged."""
        if self._failure is None and self.tokens and self._flat == self.tokens:
            self._failure = self._fail(
                Reason.FLAT_DISTRIBUTION, self.max_entropy, self._flat_limit, self._flat, hard=True
            )
        if self._failure is None and (excess := self._windows.end()):
            self._failure = self._too_wide(excess, ahead=0)
        if self._failure is not None:
            return self._failure
        if self._foreign:
            return skipped(CheckLevel.L3, Reason.NOT_LOGPROBS)
        if not self.tokens:
            return skipped(CheckLevel.L3, Reason.NO_LOGPROBS)
        if ending.finish_reason is None:
            return skipped(CheckLevel.L3, Reason.CUT_SHORT)
        return passed(CheckLevel.L3)

    def _step(self, step: TokenStep) -> Judgement | None:
        text, chosen, top, _, _ = step
        if not are_plain(chosen, top):
            if chosen is None and self._context.echo and not top:
                # The first token of an echoed prompt has no predecessor.
                return None
            if not_a_number(step):
                return self._fail(Reason.NAN_LOGITS, chosen, None, 1, hard=True, ahead=1)
            if is_positive(step):
                self._foreign = True
                return None
        found = measure(step, drawn=self._drawn_fairly)
        if found.mass > MASS_LIMIT:
            self._foreign = True
            return None
        if self._follower is not None:
            self._follower(step, found)
        return self._judge(found, text)

    def _judge(self, found: Measure, text: str) -> Judgement | None:
        """Run the rules; most steps are plainly far from most of them, so they look first."""
        lower, top, _, _, _, _, spread, _, _ = found
        figures = lower, top, spread
        if lower > self.max_entropy:  # noqa: PLR1730 (half the time of max)
            self.max_entropy = lower
        if lower >= self._flat_limit or spread <= EQUAL_SPREAD or figures == self._last:
            proven = self._flatness(found) or self._sameness(found)
            if proven is not None:
                return proven
        else:
            self._flat = self._equal = 0
            self._same, self._last = 1, figures
        excess = self._windows.take(lower)
        if excess is not None:
            return self._too_wide(excess, ahead=1)
        proven = self._choice(found)
        if proven is not None or top < LOCKED_TOP:
            self._locked = 0
            return proven
        return self._collapse(text)

    def _pass_on(self, step: TokenStep) -> None:
        """Measure for the follower alone: here nothing is left to be proven."""
        if self._follower is not None and not self._foreign and not not_a_number(step):
            self._follower(step, measure(step, drawn=False))

    def _flatness(self, found: Measure) -> Judgement | None:
        """Rule b: no token is likely, several steps in a row."""
        self._flat = self._flat + 1 if found.lower >= self._flat_limit else 0
        equal = (
            found.spread <= EQUAL_SPREAD and found.top <= EQUAL_TOP and found.known >= EQUAL_RANKS
        )
        self._equal = self._equal + 1 if equal else 0
        if self._flat < FLAT_STEPS and self._equal < EQUAL_STEPS:
            return None
        steps = max(self._flat, self._equal)
        limit = min(self._flat_limit, found.lower)
        return self._fail(Reason.FLAT_DISTRIBUTION, found.lower, limit, steps, hard=True, ahead=1)

    def _sameness(self, found: Measure) -> Judgement | None:
        """Find figures that stand still while tokens are made: the engine does not compute."""
        figures = found.lower, found.top, found.spread
        stands = figures == self._last or found.spread <= EQUAL_SPREAD
        told = found.known >= SAME_RANKS and found.top - found.spread > CLAMP
        self._same = self._same + 1 if stands and told else 1
        self._last = figures
        if self._same < SAME_STEPS:
            return None
        return self._fail(
            Reason.EQUAL_LOGPROBS, float(self._same), float(SAME_STEPS), self._same, ahead=1
        )

    def _too_wide(self, excess: Excess, *, ahead: int) -> Judgement:
        """Rule b, soft: the mean of a window is far above any healthy text, or jumps and stays."""
        return self._fail(excess.reason, excess.mean, excess.limit, excess.steps, ahead=ahead)

    def _choice(self, found: Measure) -> Judgement | None:
        """Rule c: the tokens taken do not fit the distribution that was reported."""
        if self._greedy:
            self._gaps += found.gap > GREEDY_GAP_NATS
            if found.gap <= GREEDY_GAP_NATS or self._gaps < GREEDY_GAPS:
                return None
            return self._fail(Reason.WRONG_CHOICE, found.gap, GREEDY_GAP_NATS, self._gaps, ahead=1)
        if not self._drawn_fairly:
            return None
        _, _, _, excess, variance, clip, _, _, _ = found
        self._excess += excess
        self._variance += variance
        if clip > self._clip:  # noqa: PLR1730 (half the time of max)
            self._clip = clip
        if self._excess <= QUIET_CLIPS * self._clip or self.tokens < SURPRISE_STEPS:
            return None
        score = surprise_nats(self._excess, self._variance, self._clip)
        if score <= SURPRISE_NATS:
            return None
        return self._fail(Reason.WRONG_CHOICE, score, SURPRISE_NATS, self.tokens + 1, ahead=1)

    def _collapse(self, text: str) -> Judgement | None:
        """Rule d: certainty over a long run while the text repeats beyond what was asked."""
        if not self._locked:
            self._locked_text = ""
        self._locked += 1
        self._locked_text = self._locked_text[-LOCKED_CHARS:] + text
        if self._locked < LOCKED_STEPS or self._locked % LOCKED_LOOK_STEPS:
            return None
        if not self._loops(self._locked_text):
            return None
        return self._fail(
            Reason.COLLAPSE, float(self._locked), float(LOCKED_STEPS), self._locked, ahead=1
        )

    def _loops(self, text: str) -> bool:
        run = PeriodTracker()
        run.advance(text, len(text), 0)
        if not run.period:
            return False
        limit = self._limits.chars(text[-run.period :])
        return len(text) - run.start > LOCKED_SHARE * limit

    def _fail(
        self,
        reason: Reason,
        score: float | None,
        threshold: float | None,
        steps: int,
        *,
        hard: bool = False,
        ahead: int = 0,
    ) -> Judgement:
        end = self.tokens + ahead
        finite = score if score is not None and math.isfinite(score) else None
        span = Span(token_start=max(end - steps, 0), token_end=end)
        return Judgement(
            CheckLevel.L3, Outcome.FAILED, reason, hard, finite, threshold, span, GATE_VERSION
        )


def flat_limit(vocab_size: int | None) -> float:
    """Return the entropy, in nats, at which a distribution counts as flat."""
    if vocab_size is None or vocab_size <= 1:
        return FLAT_NATS
    return min(FLAT_NATS, FLAT_SHARE * math.log(vocab_size))


def surprise_nats(excess: float, variance: float, clip: float) -> float:
    """Return minus the log of a bound on the chance of so much excess surprisal.

    Source: Freedman (1975): exp(-t^2 / (2V + 2bt/3)) for martingales with steps of at most b.
    """
    return excess * excess / (2.0 * variance + 2.0 * clip * excess / 3.0 + 1e-12)


def are_plain(chosen: float | None, top: Sequence[float | None]) -> bool:
    """Return True for numbers that may be log probabilities; others call for a closer look."""
    try:
        return IMPOSSIBLE < chosen <= POSITIVE and top[0] <= POSITIVE and top[1] <= POSITIVE  # type: ignore[operator]
    except (TypeError, IndexError):
        # A null, or fewer than two candidates.
        return False


def not_a_number(step: TokenStep) -> bool:
    """Return True where the figures are NaN, infinite, or clamps of minus infinity only."""
    chosen = step.chosen_logprob
    if chosen is not None and IMPOSSIBLE < chosen < math.inf:
        return False
    if chosen is None or chosen != chosen or chosen == math.inf:  # noqa: PLR0124
        return True
    best = max((value for value in step.top_logprobs if value is not None), default=chosen)
    return best != best or best <= IMPOSSIBLE  # noqa: PLR0124


def is_positive(step: TokenStep) -> bool:
    """Return True for figures that cannot be log probabilities, such as raw logits."""
    if (step.chosen_logprob or 0.0) > POSITIVE:
        return True
    for value in step.top_logprobs[:2]:  # noqa: SIM110 (a third of the time of any)
        if value is not None and value > POSITIVE:
            return True
    return False
