"""The rules on distributions, at their limits and past them."""

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.l3_distribution import (
    FLAT_NATS,
    FLAT_STEPS,
    GREEDY_GAPS,
    LOCKED_STEPS,
    SAME_STEPS,
    SURPRISE_NATS,
    DistributionGate,
    flat_limit,
    surprise_nats,
)
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.gates.windows import GREEDY_SHARES
from gatemesh_common.gates import Ending
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]


def uniform(size: float, k: int = 20) -> TokenStep:
    """Return a step whose likeliest tokens share one probability."""
    return TokenStep("x", -math.log(size), (-math.log(size),) * k)


def calm(text: str = "word ") -> TokenStep:
    """Return a step of a sure and healthy engine."""
    return TokenStep(text, -0.05, (-0.05, -3.5, -5.0, -6.0, -7.0))


def wrong() -> TokenStep:
    """Return a step that took a token far below the best one."""
    return TokenStep("x", -6.0, (-6.0, -0.05, -3.5, -5.0))


def wide(size: float, at: int) -> TokenStep:
    """Return a step whose likeliest tokens are nearly as likely; no two steps are the same."""
    tops = tuple(-math.log(size) - rank / 1e2 - at / 1e5 for rank in range(20))
    return TokenStep("x", tops[0], tops)


def salad(at: int) -> TokenStep:
    """Return a step of an engine that writes salad: 3.6 nats or more."""
    tops = tuple(-3.0 - rank / 10 - at / 1e5 for rank in range(20))
    return TokenStep(f"w{at} ", tops[0], tops)


NAN = TokenStep("", None, (None,) * 20)


ONSETS = (0, 1, 7, 31, 32, 33, 100, 511, 2000)
LATE: dict[str, tuple[Callable[[int], TokenStep], Reason | None]] = {
    "nan": (lambda _: NAN, Reason.NAN_LOGITS),
    "flat": (lambda _: uniform(49_152), Reason.FLAT_DISTRIBUTION),
    "salad": (salad, None),
    "locked": (lambda _: TokenStep(" stone", 0.0, (0.0, -20.0, -21.0)), Reason.COLLAPSE),
    "frozen": (lambda _: wide(60, 0), Reason.EQUAL_LOGPROBS),
}


@pytest.mark.parametrize("onset", ONSETS)
@pytest.mark.parametrize("kind", LATE)
def test_a_late_onset_is_seen_within_32_tokens(kind: str, onset: int, asking: Asking) -> None:
    """However long the answer was good before, and though it was sure of itself."""
    step, reason = LATE[kind]
    gate = DistributionGate(asking("Describe the coast", temperature=0))
    good = [calm(f"w{at} ")._replace(chosen_logprob=-0.05 - at / 1e6) for at in range(onset)]
    assert gate.feed_steps(good) is None
    judgement = gate.feed_steps([step(at) for at in range(32)])
    assert judgement is not None
    assert reason is None or judgement.reason is reason
    assert judgement.span is not None
    assert judgement.span.token_end is not None
    assert judgement.span.token_end <= onset + 32


@pytest.mark.parametrize(("steps", "failed"), [(SAME_STEPS - 1, False), (SAME_STEPS, True)])
def test_figures_that_stand_still(steps: int, failed: bool, asking: Asking) -> None:  # noqa: FBT001
    """An engine that computes never repeats twenty figures exactly, whatever token it takes."""
    tops = wide(60, 0).top_logprobs
    drawn = [(tops[at], *tops[:at], *tops[at + 1 :]) for at in range(steps)]
    gate = DistributionGate(asking())
    judgement = gate.feed_steps([TokenStep(f"w{at}", top[0], top) for at, top in enumerate(drawn)])
    assert (judgement is not None) is failed
    assert judgement is None or (judgement.reason, judgement.hard) == (Reason.EQUAL_LOGPROBS, False)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(TokenStep("{", 0.0, (0.0, *[-9999.0] * 19)), id="forced-by-a-grammar"),
        pytest.param(TokenStep("x", -0.5, (-0.5, -1.0, -2.0)), id="few-candidates"),
    ],
)
def test_figures_that_may_repeat(step: TokenStep, asking: Asking) -> None:
    """Masks write the same figures each time, and few coarse ones may agree by chance."""
    gate = DistributionGate(asking(temperature=1))
    assert gate.feed_steps([step._replace(text=f"w{at}") for at in range(20)]) is None


@pytest.mark.parametrize(
    "step",
    [
        NAN,
        TokenStep("", float("nan"), (float("nan"),)),
        TokenStep("", float("inf"), (float("inf"),)),
        TokenStep("!", -9999.0, (-9999.0,) * 5),
        TokenStep("", None),
    ],
)
def test_no_number_is_hard_at_once(step: TokenStep, asking: Asking) -> None:
    """Condition B acts on the first such token."""
    gate = DistributionGate(asking())
    assert gate.feed_steps([calm()]) is None
    judgement = gate.feed_steps([step])
    assert judgement is not None
    assert (judgement.reason, judgement.hard) == (Reason.NAN_LOGITS, True)
    assert judgement.span is not None
    assert judgement.span.token_start == 1
    assert judgement.score is None or math.isfinite(judgement.score)
    assert gate.feed_steps([NAN]) is None
    assert gate.finish(Ending("stop")) is judgement


def test_a_clamped_choice_alone_proves_nothing(asking: Asking) -> None:
    """A processor may have masked the token; the distribution is sound."""
    gate = DistributionGate(asking())
    assert gate.feed_steps([TokenStep("x", -9999.0, (-9999.0, -0.1, -3.0))]) is None


def test_the_first_token_of_an_echo(asking: Asking) -> None:
    """It has no predecessor, so null is right there."""
    gate = DistributionGate(asking(echo=True))
    assert gate.feed_steps([TokenStep("The", None), calm()]) is None
    assert gate.finish(Ending("stop")).outcome is Outcome.PASSED


def test_flat_needs_two_steps(asking: Asking) -> None:
    """One flat step may be a freak, two are proof."""
    gate = DistributionGate(asking())
    assert gate.feed_steps([calm(), uniform(49_152), calm()]) is None
    judgement = gate.feed_steps([uniform(49_152)] * FLAT_STEPS)
    assert judgement is not None
    assert (judgement.reason, judgement.hard) == (Reason.FLAT_DISTRIBUTION, True)
    assert judgement.span is not None
    assert (judgement.span.token_start, judgement.span.token_end) == (3, 5)


@pytest.mark.parametrize(("size", "failed"), [(math.exp(FLAT_NATS) * 1.01, True), (400, False)])
def test_flat_at_its_limit(size: float, failed: bool, asking: Asking) -> None:  # noqa: FBT001
    """Beyond ten nats, and where equal candidates are unlikely ones."""
    gate = DistributionGate(asking())
    assert (gate.feed_steps([uniform(size)] * 3) is not None) is failed


def test_a_small_vocabulary(asking: Asking) -> None:
    """Ten nats are out of its reach; its own size decides."""
    assert flat_limit(None) == FLAT_NATS
    assert flat_limit(1000) == pytest.approx(0.85 * math.log(1000))
    assert flat_limit(200_000) == FLAT_NATS
    tops = tuple(-5.9 - rank / 50 for rank in range(20))
    steps = [TokenStep("x", tops[0], tops)] * 2
    assert DistributionGate(asking(), 1000).feed_steps(steps) is not None
    assert DistributionGate(asking()).feed_steps(steps) is None


def test_a_flat_answer_of_one_token(asking: Asking) -> None:
    """Nothing else was seen, so the end proves it."""
    gate = DistributionGate(asking())
    assert gate.feed_steps([uniform(49_152)]) is None
    assert gate.finish(Ending("stop")).hard


@pytest.mark.parametrize(
    ("temperature", "size", "failed"),
    [(0, 70, True), (0, 40, False), (1.0, 500, True), (1.0, 250, False), (1.2, 500, False)],
)
def test_the_window(temperature: float, size: int, failed: bool, asking: Asking) -> None:  # noqa: FBT001
    """Sixteen steps of high entropy are evidence, by how the tokens are drawn."""
    gate = DistributionGate(asking(temperature=temperature, presence_penalty=1))
    judgement = gate.feed_steps([wide(size, at) for at in range(GREEDY_SHARES[0][0])])
    assert (judgement is not None) is failed
    assert judgement is None or not judgement.hard


def test_a_short_answer_of_high_entropy(asking: Asking) -> None:
    """An answer that ends before the window is full is judged by a stricter limit."""
    gate = DistributionGate(asking(temperature=0))
    assert gate.feed_steps([wide(3000, at) for at in range(6)]) is None
    assert gate.finish(Ending("stop")).reason is Reason.FLAT_DISTRIBUTION


def test_a_jump_that_stays(asking: Asking) -> None:
    """Calm at first and wild from then on is a fault; wild for a moment is not."""
    gate = DistributionGate(asking(temperature=1))
    assert gate.feed_steps([calm(f"w{n} ") for n in range(40)]) is None
    assert gate.feed_steps([salad(n) for n in range(20)]) is None
    judgement = gate.feed_steps([salad(n) for n in range(20, 40)])
    assert judgement is not None
    assert judgement.reason is Reason.ENTROPY_JUMP


def test_greedy_takes_the_best(asking: Asking) -> None:
    """Three tokens far below the best one at temperature 0 are a fault."""
    gate = DistributionGate(asking(temperature=0))
    assert gate.feed_steps([calm(), wrong(), calm(), wrong()] * 1) is None
    judgement = gate.feed_steps([wrong()])
    assert judgement is not None
    assert judgement.reason is Reason.WRONG_CHOICE
    assert not judgement.hard
    assert GREEDY_GAPS == 3


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0, "repetition_penalty": 1.2},
        {"temperature": 0, "response_format": {"type": "json_object"}},
        {},
    ],
)
def test_where_the_choice_cannot_be_judged(fields: dict[str, object], asking: Asking) -> None:
    """Penalties and grammars choose otherwise, and a few odd draws prove nothing."""
    gate = DistributionGate(asking(**fields))
    assert gate.feed_steps([wrong(), calm(), wrong(), calm(), wrong()] * 1) is None


def test_a_near_tie_is_no_wrong_choice(asking: Asking) -> None:
    """Replicas part at steps of bf16."""
    gate = DistributionGate(asking(temperature=0))
    tie = TokenStep("x", -0.95, (-0.95, -0.7, -3.0, -4.0))
    assert gate.feed_steps([tie] * 30) is None


def test_surprise(asking: Asking) -> None:
    """A text that the engine itself finds very unlikely was not drawn from it."""
    gate = DistributionGate(asking())
    judgement = gate.feed_steps([wrong() if n % 2 else calm(f"w{n} ") for n in range(60)])
    assert judgement is not None
    assert judgement.reason is Reason.WRONG_CHOICE
    assert judgement.score is not None
    assert judgement.score > SURPRISE_NATS


@pytest.mark.parametrize(
    ("prompt", "failed"), [("Describe the coast", True), ("Repeat stone 99 times", False)]
)
def test_collapse(prompt: str, failed: bool, asking: Asking) -> None:  # noqa: FBT001
    """Certainty while the text repeats beyond what was asked."""
    locked = TokenStep(" stone", 0.0, (0.0, -20.0, -21.0))
    gate = DistributionGate(asking(prompt))
    assert gate.feed_steps([locked] * (LOCKED_STEPS - 1)) is None
    judgement = gate.feed_steps([locked] * 20)
    assert (judgement is not None) is failed
    assert judgement is None or judgement.reason is Reason.COLLAPSE


def test_certainty_without_repetition_is_fine(asking: Asking) -> None:
    """Code and JSON are nearly determined."""
    gate = DistributionGate(asking())
    assert gate.feed_steps([TokenStep(f"name{n}", 0.0, (0.0, -20.0)) for n in range(100)]) is None


@pytest.mark.parametrize(
    "step", [TokenStep("x", 17.5, (17.5, 12.0)), TokenStep("x", -0.1, (-0.1, -0.1, -0.1))]
)
def test_figures_that_are_no_log_probabilities(step: TokenStep, asking: Asking) -> None:
    """Raw logits are not judged, and that is said."""
    gate = DistributionGate(asking())
    assert gate.feed_steps([step, NAN]) is None
    judgement = gate.finish(Ending("stop"))
    assert (judgement.outcome, judgement.reason) == (Outcome.SKIPPED, Reason.NOT_LOGPROBS)


def test_without_figures_it_never_passes(asking: Asking) -> None:
    """What it could not judge is skipped, with its reason."""
    gate = DistributionGate(asking())
    assert gate.finish(Ending("stop")).reason is Reason.NO_LOGPROBS
    gate = DistributionGate(asking())
    gate.feed_steps([calm()])
    assert gate.finish(Ending(None)).reason is Reason.CUT_SHORT
    assert gate.finish(Ending("stop")).outcome is Outcome.PASSED


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2), st.lists(st.integers(1, 7), min_size=1, max_size=30))
def test_chunks_change_nothing(kind: int, cuts: list[int]) -> None:
    """Bursts of steps give the verdict of single steps."""
    rng = random.Random(sum(cuts))
    tail = ([uniform(49_152)] * 3, [wrong()] * 9, [NAN])[kind]
    steps = [calm(f"w{rng.random()}") for _ in range(40)] + tail
    context = RequestContext(temperature=0)
    whole, parts = DistributionGate(context), DistributionGate(context)
    whole.feed_steps(steps)
    at = 0
    for cut in cuts * 60:
        parts.feed_steps(steps[at : at + cut])
        at += cut
    assert whole.finish(Ending("stop")) == parts.finish(Ending("stop"))


def test_surprise_figure() -> None:
    """The bound grows with the excess and falls with the variance."""
    assert surprise_nats(20, 4, 5) > surprise_nats(10, 4, 5)
    assert surprise_nats(20, 4, 5) > surprise_nats(20, 40, 5)
