"""What keeping the last steps of an answer for captures costs, beside what judging them costs.

Run as `python -m benchmarks.capture_cost`. Both ways judge the same steps in one process, batch by
batch in turns, so that a busy machine slows both alike; the figure
is the ratio of the fastest tenths, which others disturbed least.
"""

import json
import random
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import orjson
from benchmarks.gate_cost import CANDIDATES, REQUEST, SHAPES, Shape, synthetic_shape, synthetic_step

from gatemesh_agent.collected import Collected
from gatemesh_agent.gates.chain import GateChain
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.judging import AnswerJudge
from gatemesh_agent.recent import Evidence
from gatemesh_agent.stripping import loads

BATCH = 50
TOKENS = 2_000
RUNS = 6
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)

Clock = Callable[[], float]


def measure_share(
    rng: random.Random, clock: Clock = time.process_time, tokens: int = TOKENS, runs: int = RUNS
) -> dict[str, float]:
    """Return microseconds per token with and without, and the share that keeping adds."""
    shapes = [synthetic_shape(rng) for _ in range(SHAPES)]
    bare: list[float] = []
    keeping: list[float] = []
    for _ in range(runs):
        ways = [(new_judge(keeps=False), bare), (new_judge(keeps=True), keeping)]
        for _ in range(0, tokens, BATCH):
            # Whoever is second finds the steps in the cache.
            rng.shuffle(ways)
            for judge, spent in ways:
                events = deque(new_event(rng, shapes) for _ in range(BATCH))
                spent.append(seconds_of(judge, events, clock) / BATCH)
    without, with_it = (statistics.quantiles(spent, n=10)[0] for spent in (bare, keeping))
    return {
        "judging_us": round(without * 1e6, 2),
        "with_keeping_us": round(with_it * 1e6, 2),
        "share": round(with_it / without - 1.0, 4),
    }


def new_judge(*, keeps: bool) -> AnswerJudge:
    """Return the judge of one streamed answer."""
    evidence = Evidence(lambda _: True, lambda *_: None) if keeps else None
    chain = GateChain(context_of(REQUEST))
    return AnswerJudge(lambda: chain, Collected(), lambda: NOON, CANDIDATES, evidence=evidence)


def new_event(rng: random.Random, shapes: Sequence[Shape]) -> bytes:
    """Return one event of a stream, as an engine writes it."""
    step = synthetic_step(rng, shapes)
    top = [{"token": f"token_id:{n}", "logprob": one} for n, one in enumerate(step.top_logprobs)]
    entry = {
        "token": "token_id:1",
        "logprob": step.chosen_logprob,
        "bytes": list(step.text.encode()),
    }
    content = [{**entry, "top_logprobs": top}]
    choice = {"index": 0, "delta": {"content": step.text}, "logprobs": {"content": content}}
    return b"data: " + orjson.dumps({"choices": [choice]}) + b"\n\n"


def seconds_of(judge: AnswerJudge, events: deque[bytes], clock: Clock) -> float:
    """Feed events one by one and let go of each; return the time that judging took."""
    spent = 0.0
    while events:
        event = events.popleft()
        fields = loads(event[6:])
        began = clock()
        judge.take_event(fields, event)
        spent += clock() - began
    return spent


def main() -> None:
    """Print the figures as JSON."""
    sys.stdout.write(f"{json.dumps(measure_share(random.Random(1)))}\n")


if __name__ == "__main__":
    main()
