"""What L1, L2 and L3 cost per token, on steps as an engine reports them with 20 candidates.

The figures are CPU time, and medians over batches of tokens. The steps of a batch are made right
before it is judged, so they lie in the cache as they do in the agent, which has just read them.
"""

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from benchmarks.gate_inputs import InputError

from gatemesh_agent.gates.chain import GateChain
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_common.messages import CheckLevel, Outcome, Reason

MARKS = (0, 100, 1_000, 10_000, 30_000)
BATCH = 50
RUNS = 3
CANDIDATES = 20
LIKELY_TOKENS = 60
SPREAD_NATS = 3.0
"""Of the logits: a mean entropy of about one nat, as of a small model at temperature 1."""
SHAPES = 512
REQUEST = {"messages": [{"role": "user", "content": "Tell me a story."}], "temperature": 1.0}

Clock = Callable[[], float]
Shape = tuple[list[float], list[float]]
"""Log probabilities, the likeliest first, and their shares added up."""


def measure_cost(
    rng: random.Random, clock: Clock = time.process_time, marks: Sequence[int] = MARKS
) -> dict[str, float]:
    """Return microseconds per token in each stretch of an answer, token by token.

    Raises:
        InputError: a gate failed or did not judge, so the figures would mean nothing.
    """
    shapes = [synthetic_shape(rng) for _ in range(SHAPES)]
    spent: dict[str, list[float]] = {}
    for _ in range(RUNS):
        chain = GateChain(context_of(REQUEST))
        for before, mark in pairwise(marks):
            batches = spent.setdefault(f"{before + 1}-{mark}", [])
            for _ in range(before, mark, BATCH):
                steps = [synthetic_step(rng, shapes) for _ in range(BATCH)]
                batches.append(seconds_of(chain, steps, clock) / BATCH)
        check(chain)
    return {name: round(statistics.median(found) * 1e6, 2) for name, found in spent.items()}


def seconds_of(chain: GateChain, steps: Sequence[TokenStep], clock: Clock) -> float:
    """Feed steps one by one, as a stream brings them; return the time that it took."""
    began = clock()
    for step in steps:
        chain.feed_text(step.text)
        chain.feed_steps((step,))
    return clock() - began


def check(chain: GateChain) -> None:
    """Make sure that every gate was at work to the end.

    Raises:
        InputError: one failed, or abstained but for want of a baseline.
    """
    for found in chain.finish("stop"):
        at_work = found.outcome is Outcome.PASSED or (
            found.gate is CheckLevel.L2 and found.reason is Reason.WARMING
        )
        # The text ends anywhere.
        if not at_work and found.reason is not Reason.TRUNCATED:
            raise InputError(f"{found.gate} said {found.reason} of the synthetic answer")


def synthetic_shape(rng: random.Random) -> Shape:
    """Return a distribution of the kind that language models have."""
    logits = sorted((rng.gauss(0, SPREAD_NATS) for _ in range(LIKELY_TOKENS)), reverse=True)
    norm = math.log(sum(map(math.exp, logits)))
    logprobs = [logit - norm for logit in logits]
    return logprobs, list(accumulate(map(math.exp, logprobs)))


def synthetic_step(rng: random.Random, shapes: Sequence[Shape]) -> TokenStep:
    """Return a new step of about four characters, its token drawn from its distribution."""
    letters = "".join(rng.choices("etaoinshrdlucmfwypvbgk", k=rng.randint(1, 6)))
    text = rng.choice(("", " ", " ", " ")) + letters + rng.choice(("", "", "", "", "", ".", ","))
    logprobs, shares = rng.choice(shapes)
    chosen = rng.choices(logprobs, cum_weights=shares)[0]
    others = [value for value in logprobs[:CANDIDATES] if value != chosen]
    # Numbers of its own, as parsing makes them.
    return TokenStep(text, chosen + 0.0, tuple([value + 0.0 for value in (chosen, *others)]))
