"""How often gate L2 holds a drift against a healthy life, and how soon against a damaged one.

And how well pairs of answers tell a damaged life from traffic that grew harder.

    python benchmarks/drift.py [--clean FILE.jsonl.gz] [--answers N] [--json OUT]

Without a file the scores are drawn: normal, the figures of one answer correlated. With recorded
clean answers (`benchmarks/clean_answers.py`) half of the prompts teach a baseline, and the scores
of the other half are drawn again and again.
"""

import argparse
import hashlib
import itertools
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.gate_corpus import choices_of
from benchmarks.gate_inputs import read_lines

from gatemesh_agent.gates.chain import GateChain
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.drift import DEVIATES, SLACK, WATCHED, PoolDrift, Score, WitnessDrift
from gatemesh_agent.gates.l2_perplexity import Usual
from gatemesh_agent.gates.learning import Learner
from gatemesh_agent.gates.pool_baseline import CLIP, Metric, PoolBaseline
from gatemesh_agent.jury import Jury, Suspicion
from gatemesh_agent.reporting import Life
from gatemesh_common.messages import Attribution

SHARED_SIGMA = 0.92
"""Of a score's spread, what all figures of an answer share. Source: recorded clean answers."""
MATURE_ANSWERS = 2_000
"""Answers that a baseline was learnt from: its slack is that of such a one."""
Scores = dict[Metric, Score]
Draw = Callable[[random.Random], Scores]


def drawn(shift: float, answers: int) -> Draw:
    """Return what draws normal scores around a shift, measured by a baseline of some answers."""
    own = (1.0 - SHARED_SIGMA**2) ** 0.5
    slack = SLACK / answers**0.5

    def draw(rng: random.Random) -> Scores:
        shared = rng.gauss(shift, SHARED_SIGMA)
        return {
            metric: Score(max(-CLIP, min(shared + rng.gauss(0.0, own), CLIP)), slack)
            for metric in WATCHED
        }

    return draw


def usual_of(line: Mapping[str, Any]) -> Usual | None:
    """Return the figures of a recorded answer, unless a gate failed or skipped it."""
    for choice in choices_of(line):
        chain = GateChain(context_of(line["request"]))
        chain.feed_steps(choice.steps)
        chain.finish(choice.finish_reason)
        return chain.usual
    return None


def half_of(line: Mapping[str, Any]) -> int:
    """Return to which half of the prompts a line belongs."""
    prompt = json.dumps(line["request"].get("messages"))
    return hashlib.sha256(prompt.encode()).digest()[0] % 2


def scores_of(usual: Usual, baseline: PoolBaseline) -> Scores:
    """Return the scores of an answer's figures."""
    return {
        metric: Score(normal.score(usual.values[metric]), SLACK / MATURE_ANSWERS**0.5)
        for metric in WATCHED
        if metric in usual.values
        and (normal := baseline.normal(metric, usual.decoding, usual.script)) is not None
    }


def recorded_scores(lines: Sequence[Mapping[str, Any]]) -> list[Scores]:
    """Return the scores of recorded answers, each by what the other half of the prompts taught."""
    known = [(half_of(line), usual) for line in lines if (usual := usual_of(line)) is not None]
    found: list[Scores] = []
    for half in (0, 1):
        learner = Learner()
        for other, usual in known:
            if other != half:
                learner.add(usual)
        baseline = learner.baseline()
        found += [scores_of(usual, baseline) for own, usual in known if own == half]
    return [scores for scores in found if scores]


def false_alarms(draw: Draw, answers: int, rng: random.Random) -> int:
    """Return how often a life trips in so many answers; each time a new one begins."""
    trips = 0
    life = PoolDrift().of("life")
    for _ in range(answers):
        life.take(draw(rng), None)
        if life.tripped:
            trips += 1
            life = PoolDrift().of("life")
    return trips


def median_delay(draw: Draw, rng: random.Random, lives: int = 201) -> int:
    """Return the answers that a leaning life gives before it is found out, in the median."""
    delays = []
    for _ in range(lives):
        life, count = PoolDrift().of("life"), 0
        while not life.tripped and count < 1_000:
            life.take(draw(rng), None)
            count += 1
        delays.append(count)
    return sorted(delays)[lives // 2]


TRIALS = 300
WORLDS = ((0.5, 0.0), (1.0, 0.0), (2.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 1.0))
"""What the traffic leans by and what the life leans by itself, in normal scores."""
CORRELATIONS = (0.0, 0.5, 0.9)
MOST_PAIRS = 60


def trial(lean: tuple[float, float], correlation: float, rng: random.Random) -> tuple[str, int]:
    """Return how a suspicion ends, and after how many pairs."""
    traffic, damage = lean
    jury, suspicion = Jury(), Suspicion(Life("life", 0, None, numbered=True), "nll_whole", 1)
    share, rest = correlation**0.5, (1.0 - correlation) ** 0.5
    heard = 0
    while heard < MOST_PAIRS:
        prompt = traffic + share * rng.gauss(0.0, 1.0)
        accused = min(prompt + damage + rest * rng.gauss(0.0, 1.0), CLIP)
        if accused < DEVIATES:
            continue
        heard += 1
        score = max(-CLIP, min(prompt + rest * rng.gauss(0.0, 1.0), CLIP))
        told = {"answer_score": accused, "life_score": traffic + damage}
        jury.hear(suspicion, told, WitnessDrift(Metric.NLL_WHOLE, score), 0.0)
        ruling = jury.rule(suspicion, 0.0)
        if ruling is not Attribution.UNKNOWN:
            return ruling.value, heard
    return Attribution.UNKNOWN.value, heard


def trials(rng: random.Random) -> list[dict[str, Any]]:
    """Return how suspicions end, by what makes answers lean and by how alike two of them are."""
    found = []
    for (traffic, damage), correlation in itertools.product(WORLDS, CORRELATIONS):
        ends = [trial((traffic, damage), correlation, rng) for _ in range(TRIALS)]
        condemned = sorted(count for ruling, count in ends if ruling == Attribution.INSTANCE)
        found.append(
            {
                "traffic": traffic,
                "damage": damage,
                "correlation": correlation,
                "condemned": len(condemned) / TRIALS,
                "median_pairs": condemned[len(condemned) // 2] if condemned else None,
            }
        )
    return found


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return false alarms, and how soon shifts are found."""
    rng = random.Random(20)
    draw = drawn(0.0, MATURE_ANSWERS)
    result: dict[str, Any] = {
        "answers": options.answers,
        "median_answers_until_found": {
            str(shift): median_delay(drawn(shift, MATURE_ANSWERS), rng)
            for shift in (0.75, 1.0, 1.5, 2.0, 3.0)
        },
        "pairs": trials(rng),
    }
    if options.clean:
        scores = recorded_scores(list(read_lines(options.clean)))
        result["recorded"] = len(scores)
        draw = lambda rng: rng.choice(scores)  # noqa: E731
    trips = false_alarms(draw, options.answers, rng)
    result["false_alarms"] = trips
    result["answers_per_false_alarm"] = options.answers // max(trips, 1)
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--clean", type=Path, help="recorded clean answers, JSON Lines, gzipped")
    parser.add_argument("--answers", type=int, default=1_000_000, help="answers to simulate")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(argv)
    result = measure(options)
    print(json.dumps(result, indent=2))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
