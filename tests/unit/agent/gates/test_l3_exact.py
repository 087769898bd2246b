"""The rules on exact figures, at their limits and past them."""

import math
import random
from collections.abc import Callable

import pytest

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.l3_exact import STEPS_KEPT, ExactChoice, ExactGate, ExactStep
from gatemesh_agent.gates.windows import GREEDY_SHARES
from gatemesh_common.messages import Outcome, Reason

Asking = Callable[..., RequestContext]
V = 49_152


def step(number: int = 0, entropy: float | None = 1.0, **more: float) -> ExactStep:
    """A measured step, sound unless said otherwise."""
    given = {"top1_p": 0.6, "variance": 1.0, "nan": 0, "pos_inf": 0, "vocab_size": V, **more}
    return ExactStep(number, entropy, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("damage", [{"nan": 1}, {"pos_inf": 1}, {"nan": V}])
@pytest.mark.parametrize("choices", [1, 3])
def test_nan_is_hard_at_once(damage: dict[str, float], choices: int, asking: Asking) -> None:
    """One such logit is proof, whichever of several choices it belongs to."""
    gate = ExactGate(asking(), choices=choices)
    assert gate.feed_step(step(0)) is None
    found = gate.feed_step(step(8, None, **damage))
    assert found is not None
    assert (found.reason, found.hard) == (Reason.NAN_LOGITS, True)
    assert found.span is not None
    assert found.span.token_start == 8
    assert gate.feed_step(step(16, None, nan=1)) is None
    assert gate.finish(whole=True) is found
    assert gate.failure is found


def test_no_figures_without_nan_prove_nothing(asking: Asking) -> None:
    """A grammar that allows no token leaves none either."""
    gate = ExactGate(asking())
    assert gate.feed_step(step(0, None)) is None
    assert gate.finish(whole=True).outcome is Outcome.PASSED


@pytest.mark.parametrize(("entropy", "failed"), [(10.0, True), (9.99, False)])
def test_flat_at_its_limit(entropy: float, failed: bool, asking: Asking) -> None:  # noqa: FBT001
    """Two measured steps in a row."""
    gate = ExactGate(asking(temperature=1.2))
    assert gate.feed_step(step(0, 10.5, vocab_size=200_000)) is None
    found = gate.feed_step(step(8, entropy, vocab_size=200_000))
    assert (found is not None) is failed
    assert found is None or (found.reason, found.hard) == (Reason.FLAT_DISTRIBUTION, True)


def test_a_small_vocabulary_is_known_from_the_figures(asking: Asking) -> None:
    """Ten nats are out of its reach."""
    gate = ExactGate(asking(temperature=1.2))
    steps = [step(at, 6.5, vocab_size=1000) for at in (0, 8)]
    assert [gate.feed_step(each) is not None for each in steps] == [False, True]


def test_a_flat_answer_of_one_measured_step(asking: Asking) -> None:
    """Nothing else was seen."""
    gate = ExactGate(asking())
    assert gate.feed_step(step(0, 10.8)) is None
    assert gate.finish(whole=True).hard


def test_a_wide_window_is_soft(asking: Asking) -> None:
    """Means of measured steps; of several choices they cannot be told apart."""
    steps, share = GREEDY_SHARES[0]
    wide = share * math.log(V) * 1.01
    alone, several = ExactGate(asking(temperature=0), V), ExactGate(asking(), V, choices=2)
    found = [alone.feed_step(step(at * 8, wide)) for at in range(steps)]
    assert found[-1] is not None
    assert not found[-1].hard
    assert all(several.feed_step(step(at * 8, wide)) is None for at in range(steps))


def choose(gate: ExactGate, at: int, logprob: float, rank: int) -> bool:
    """Measure a step and its token; True when that proves a fault."""
    gate.feed_step(step(at))
    return gate.feed_choice(ExactChoice(at, logprob, rank)) is not None


def test_greedy_takes_the_best(asking: Asking) -> None:
    """Three tokens more than a nat below the best one; near ties do not count."""
    best = math.log(0.6)
    gate = ExactGate(asking(temperature=0))
    assert not any(choose(gate, at, best - 0.99, 1) for at in range(10))
    found = [choose(gate, at, best - 1.01, 1) for at in range(10, 13)]
    assert found == [False, False, True]
    assert gate.failure is not None
    assert (gate.failure.reason, gate.failure.hard) == (Reason.WRONG_CHOICE, False)


@pytest.mark.parametrize(
    "fields",
    [{"temperature": 0, "repetition_penalty": 1.2}, {"logit_bias": {"1": 5}}, {"temperature": 1.2}],
)
def test_where_the_choice_cannot_be_judged(fields: dict[str, object], asking: Asking) -> None:
    """Penalties choose otherwise, and hot requests draw anything."""
    gate = ExactGate(asking(**fields))
    assert not any(choose(gate, at, -15.0, 900) for at in range(60))


def test_tokens_that_were_not_drawn(asking: Asking) -> None:
    """Far too surprising, all together."""
    gate = ExactGate(asking(temperature=1))
    assert any(choose(gate, at, -9.0, 500) for at in range(60))
    assert gate.failure is not None
    assert gate.failure.reason is Reason.WRONG_CHOICE


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_fair_draws_are_never_surprising(temperature: float, asking: Asking) -> None:
    """Also where they are drawn from a narrower distribution than the one that is measured."""
    rng = random.Random(3)
    for _ in range(40):
        gate = ExactGate(asking(temperature=temperature))
        for at in range(80):
            weights = [rng.random() ** 8 + 1e-9 for _ in range(50)]
            shares = [weight / sum(weights) for weight in weights]
            logs = [math.log(share) for share in shares]
            entropy = -sum(p * x for p, x in zip(shares, logs, strict=True))
            variance = sum(p * x * x for p, x in zip(shares, logs, strict=True)) - entropy**2
            drawn = rng.choices(logs, [share ** (1 / temperature) for share in shares])[0]
            gate.feed_step(step(at, entropy, variance=variance))
            assert gate.feed_choice(ExactChoice(at, drawn, 0)) is None


def test_a_choice_of_an_unknown_step_is_left(asking: Asking) -> None:
    """Lines may be lost, and memory is bounded."""
    gate = ExactGate(asking(temperature=0))
    for at in range(STEPS_KEPT + 1):
        gate.feed_step(step(at))
    assert all(gate.feed_choice(ExactChoice(0, -30.0, 9)) is None for _ in range(5))
    assert gate.measured == STEPS_KEPT + 1


def test_what_was_not_measured_is_skipped(asking: Asking) -> None:
    """Never passed."""
    assert ExactGate(asking()).finish(whole=True).outcome is Outcome.SKIPPED
    gate = ExactGate(asking())
    gate.feed_step(step())
    assert gate.finish(whole=False).reason is Reason.CUT_SHORT
    assert gate.finish(whole=True).outcome is Outcome.PASSED
