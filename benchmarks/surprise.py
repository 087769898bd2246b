"""How often fairly drawn answers surprise rule c of gate L3: the false-positive rate, simulated."""

import argparse
import json
import math
import random
import sys
from collections.abc import Callable, Iterable, Sequence

from gatemesh_agent.gates.entropy import measure
from gatemesh_agent.gates.l3_distribution import SURPRISE_NATS, SURPRISE_STEPS, surprise_nats
from gatemesh_agent.gates.steps import TokenStep

VOCABULARY = 200
TOP = 20
LEVELS_NATS = (2.0, 4.0, 6.0, 8.0, 12.0, SURPRISE_NATS)
Draw = Callable[[random.Random], list[float]]


def zipf(rng: random.Random) -> list[float]:
    """Logits that fall with the logarithm of the rank, steeply or not."""
    slope = rng.uniform(0.2, 4.0)
    return [-slope * math.log(rank + 1) for rank in range(VOCABULARY)]


def certain(rng: random.Random) -> list[float]:
    """One token nearly sure, all others alike: the rarest draws are the most surprising ones."""
    gap = rng.uniform(4.0, 14.0)
    return [gap, *[0.0] * (VOCABULARY - 1)]


def spread(rng: random.Random) -> list[float]:
    """Independent logits of random width."""
    width = rng.uniform(0.1, 6.0)
    return [rng.gauss(0.0, width) for _ in range(VOCABULARY)]


SHAPES: tuple[Draw, ...] = (zipf, certain, spread)


def logprobs_of(logits: Sequence[float]) -> list[float]:
    """Return the log probabilities of the logits."""
    top = max(logits)
    total = top + math.log(sum(math.exp(value - top) for value in logits))
    return [value - total for value in logits]


def drawn_step(rng: random.Random, temperature: float, shape: Draw) -> TokenStep:
    """Return a step as the engine reports it: raw figures, token drawn at this temperature."""
    logprobs = logprobs_of(shape(rng))
    weights = [math.exp(value / temperature) for value in logprobs]
    at = rng.choices(range(len(logprobs)), weights)[0]
    chosen = logprobs.pop(at)
    rest = sorted(logprobs, reverse=True)[: TOP - 1]
    return TokenStep("x", chosen, (chosen, *rest))


def highest_score(steps: Iterable[TokenStep]) -> float:
    """Return the largest score that the test reaches at any step of one answer."""
    excess = variance = clip = highest = 0.0
    for count, step in enumerate(steps):
        found = measure(step)
        excess += found.excess
        variance += found.variance
        clip = max(clip, found.clip)
        if count >= SURPRISE_STEPS and excess > 0.0:
            highest = max(highest, surprise_nats(excess, variance, clip))
    return highest


def scores(answers: int, steps: int, seed: int) -> list[float]:
    """Return the highest score of each of many fairly drawn answers."""
    found = []
    for number in range(answers):
        rng = random.Random(seed * 1_000_003 + number)
        temperature = rng.choice((0.3, 0.7, 1.0, 1.0))
        shapes = SHAPES if number % 2 else (rng.choice(SHAPES),)
        answer = (drawn_step(rng, temperature, rng.choice(shapes)) for _ in range(steps))
        found.append(highest_score(answer))
    return found


def summary(found: Sequence[float]) -> list[dict[str, float]]:
    """Return for each level the share of answers above it, and the bound."""
    return [
        {
            "level_nats": level,
            "share": sum(score > level for score in found) / len(found),
            "bound": math.exp(-level),
        }
        for level in LEVELS_NATS
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate and print; returns 1 when a share lies above its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    levels = summary(scores(options.answers, options.steps, options.seed))
    sys.stdout.write(json.dumps({"answers": options.answers, "levels": levels}, indent=2) + "\n")
    return int(any(level["share"] > level["bound"] for level in levels))


if __name__ == "__main__":
    sys.exit(main())
