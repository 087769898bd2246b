"""Measure the shadow: pairs per second, and what the replica score sees of recorded answers.

    python benchmarks/shadow.py pairs [--pairs N]
    python benchmarks/shadow.py replica --corpus DIR --engine URL [--each N] [--json OUT]

`pairs` needs gatemesh[models]; it compares answers end to end and sets that against bare
`SentenceTransformer.encode` of the same texts. `replica` lets a real, healthy engine score each
recorded answer; limits are those of the service, default and learnt from the clean answers.
"""

import argparse
import asyncio
import gzip
import json
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatemesh_common.messages import Decoding, Outcome
from gatemesh_shadow.batching import Batcher
from gatemesh_shadow.compare import judge_pair, needs_cosine
from gatemesh_shadow.embed import SentenceModel
from gatemesh_shadow.languages import language_of
from gatemesh_shadow.limits import VersionLimits
from gatemesh_shadow.replay import read_scores, score_body
from gatemesh_shadow.replica import ReplicaClient
from gatemesh_shadow.scores import Figures, figures_of, judge_figures
from gatemesh_shadow.sequential import DriftWatch

HEALTHY = "clean"
AT_ONCE = 4
DRIFT_RUNS = 100
DRIFT_MOST = 100
BATCH = 64
SENTENCES = (
    "The bread is baked in a hot oven until its crust is brown.",
    "Rain falls when small drops in a cloud have grown heavy enough.",
    "A good knife is kept sharp and dry, and never in a drawer with others.",
    "Trains are slower than planes, but they leave from the middle of the town.",
    "Nobody knows how many bridges were built in the valley before the flood.",
    "The library opens at nine and closes when the last reader has left.",
    "Most plants need light and water, and some need shade for half of the day.",
    "She wrote the letter by hand, read it twice, and put it into the fire.",
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded answer with its tokens and the log probabilities that came with it."""

    variant: str
    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    own: tuple[float | None, ...] | None
    decoding: Decoding


def read_corpus(folder: Path, each: int) -> Iterator[Recorded]:
    """The recorded answers with token ids, at most so many per variant and way of decoding."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        lines = gzip.decompress(path.read_bytes()).splitlines()
        read = [found for line in lines if (found := recorded_of(json.loads(line)))]
        for decoding in (Decoding.GREEDY, Decoding.SAMPLED):
            yield from [one for one in read if one.decoding is decoding][:each]


def recorded_of(row: Mapping[str, Any]) -> Recorded | None:
    """Read one row; None for streams, refusals and answers without ids."""
    if row["status"] != 200 or row["stream"]:
        return None
    body = json.loads(row["body"])
    [choice] = body["choices"]
    if not choice.get("token_ids") or not body.get("prompt_token_ids"):
        return None
    entries = (choice.get("logprobs") or {}).get("content")
    own = tuple(one.get("logprob") for one in entries) if entries else None
    decoding = Decoding.GREEDY if row["mode"] == "greedy" else Decoding.SAMPLED
    prompt, answer = tuple(body["prompt_token_ids"]), tuple(choice["token_ids"])
    return Recorded(row["variant"], prompt, answer, own, decoding)


async def score_all(
    rows: Sequence[Recorded], engine: str
) -> dict[tuple[str, Decoding], list[Figures]]:
    """Let the engine score every row."""
    found: dict[tuple[str, Decoding], list[Figures]] = defaultdict(list)
    gate = asyncio.Semaphore(AT_ONCE)
    async with ReplicaClient(300.0) as client:
        model = await client.model(engine)

        async def one(row: Recorded) -> None:
            async with gate:
                body = score_body(model, [*row.prompt, *row.answer])
                scores = read_scores(await client.post(engine, "/v1/completions", body), row.answer)
            is_greedy = row.decoding is Decoding.GREEDY
            figures = figures_of(scores.chosen, scores.favourite, row.own, greedy=is_greedy)
            found[row.variant, row.decoding].append(figures)

        await asyncio.gather(*map(one, rows))
    return found


def auc(healthy: Sequence[float], damaged: Sequence[float]) -> float:
    """Share of pairs in which the damaged one has the higher figure; ties count half."""
    wins = sum((bad > good) + (bad == good) / 2 for bad in damaged for good in healthy)
    return wins / (len(healthy) * len(damaged))


def caught(figures: Sequence[Figures], limits: VersionLimits, decoding: Decoding) -> float:
    """Share of answers that fail one by one."""
    verdicts = [judge_figures(one, limits.scores(decoding)).outcome for one in figures]
    return sum(one is Outcome.FAILED for one in verdicts) / len(verdicts)


def answers_until_drift(
    figures: Sequence[Figures], limits: VersionLimits, decoding: Decoding
) -> float:
    """Median number of answers until a life of such answers has drifted."""
    rng, normal = random.Random(7), limits.normal(decoding)
    counts = []
    for _ in range(DRIFT_RUNS):
        watch, count = DriftWatch(), 0
        drift = None
        while drift is None and count < DRIFT_MOST:
            count += 1
            drift = watch.add(("x", 1), "judge", (), rng.choice(figures).measures(), normal)
        counts.append(count)
    return statistics.median(counts)


def report_rows(found: Mapping[tuple[str, Decoding], Sequence[Figures]]) -> list[dict[str, Any]]:
    """One row per variant and way of decoding."""
    learnt = VersionLimits(measured_at="here")
    for (variant, decoding), figures in found.items():
        for one in figures if variant == HEALTHY else ():
            learnt.learn(decoding, one)
    rows = []
    for (variant, decoding), figures in sorted(found.items()):
        measure = "distance" if figures[0].distance is not None else "nll"
        values = [value for one in figures if (value := getattr(one, measure)) is not None]
        healthy = learnt.learnt[decoding].values(measure)
        blind = [
            Figures(one.tokens, one.nll, None, None, one.regret, one.worst_regret)
            for one in figures
        ]
        rows.append(
            {
                "variant": variant,
                "decoding": decoding.value,
                "answers": len(figures),
                "measure": measure,
                "median": statistics.median(values),
                "auc": auc(healthy, values) if healthy else None,
                "caught_default": caught(figures, VersionLimits(), decoding),
                "caught_calibrated": caught(figures, learnt, decoding),
                "caught_without_own": caught(blind, learnt, decoding),
                "answers_until_drift": answers_until_drift(figures, learnt, decoding),
            }
        )
    return rows


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """A table for people."""
    print("variant              decoding  n  median  AUC   default calibr. no own  drift after")
    for row in rows:
        area = "  - " if row["auc"] is None else f"{row['auc']:.2f}"
        print(
            f"{row['variant']:<20} {row['decoding']:<8} {row['answers']:>3} {row['median']:7.3f}"
            f"  {area}  {row['caught_default']:6.0%} {row['caught_calibrated']:7.0%}"
            f" {row['caught_without_own']:6.0%} {row['answers_until_drift']:>8.0f}"
        )


def made_pairs(count: int) -> list[tuple[dict[str, Any], str, str]]:
    """Pairs of answers of some 100 words each, with their request."""
    rng = random.Random(3)
    request = {"messages": [{"role": "user", "content": "Tell me something."}], "temperature": 0}

    def text(place: int) -> str:
        return " ".join(rng.choices(SENTENCES, k=8)) + f" Case {place}."

    return [(request, text(2 * place), text(2 * place + 1)) for place in range(count)]


async def compare_all(
    pairs: Sequence[tuple[dict[str, Any], str, str]], model: SentenceModel
) -> int:
    """Compare pairs as the service does; return how many verdicts there are."""
    batcher = Batcher(model.cosines, BATCH // 2, 0.02)

    async def one(request: dict[str, Any], first: str, second: str) -> Any:
        cosine = None
        if needs_cosine(request, first, second) and language_of(second) == "en":
            cosine = await batcher.submit((first, second))
        return judge_pair(request, first, second, cosine=cosine)

    judged = await asyncio.gather(*(one(*pair) for pair in pairs))
    batcher.close()
    return sum(one.outcome is not Outcome.SKIPPED for one in judged)


def measure_pairs(count: int, threads: int) -> dict[str, float]:
    """Pairs per second, ours and bare, taken in turns so that both see the same machine."""
    pairs = made_pairs(count)
    model = SentenceModel("", BATCH, threads)
    bare = model.load()
    texts = [text for _, *both in pairs for text in both]
    bare.encode(texts[:BATCH], batch_size=BATCH)
    ours, theirs = [], []
    for _ in range(3):
        begun = time.process_time()
        asyncio.run(compare_all(pairs, model))
        ours.append(time.process_time() - begun)
        begun = time.process_time()
        bare.encode(texts, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)
        theirs.append(time.process_time() - begun)
    own_s, bare_s = statistics.median(ours), statistics.median(theirs)
    return {
        "pairs": count,
        "pairs_per_cpu_s": count / own_s,
        "bare_pairs_per_cpu_s": count / bare_s,
        "ratio": bare_s / own_s,
    }


def main(arguments: Sequence[str]) -> int:
    """Run one measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    pairs = kinds.add_parser("pairs")
    pairs.add_argument("--pairs", type=int, default=128)
    pairs.add_argument("--threads", type=int, default=1)
    replica = kinds.add_parser("replica")
    replica.add_argument("--corpus", type=Path, required=True)
    replica.add_argument("--engine", required=True, help="base address of a healthy engine")
    replica.add_argument("--each", type=int, default=28, help="answers per variant and decoding")
    replica.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    if options.kind == "pairs":
        print(json.dumps(measure_pairs(options.pairs, options.threads), indent=1))
        return 0
    found = asyncio.run(score_all(list(read_corpus(options.corpus, options.each)), options.engine))
    rows = report_rows(found)
    print_rows(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
