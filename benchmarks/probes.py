"""Ask an engine the probe suite several times: what it answers rightly, and how long it takes.

    python benchmarks/probes.py --url http://127.0.0.1:8000 --runs 3 --parallel 1 2 8

A prompt that is wrong in every run is one that the model cannot answer: a calibrated model drops
it, and a rule in the suite should leave it out. One that is wrong in some runs is unsteady.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from gatemesh_agent.judging import Judging
from gatemesh_agent.probe_asking import Asker, Pace
from gatemesh_agent.reporting import Reporter
from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.suite import Answer, Asking, Suite, Way, askings, conclude, load_suite
from gatemesh_agent.telemetry import Telemetry
from gatemesh_agent.upstream import open_upstream
from gatemesh_common.clock import utc_now


def tally(runs: Sequence[Sequence[Answer]]) -> dict[str, dict[str, str]]:
    """Return for each prompt and way a sign per run: right `+`, wrong `-`, at fault `!`."""
    found: defaultdict[str, defaultdict[str, str]] = defaultdict(lambda: defaultdict(str))
    for answers in runs:
        for answer in answers:
            found[answer.prompt_id][answer.way] += sign_of(answer)
    return {name: dict(sorted(ways.items())) for name, ways in sorted(found.items())}


def sign_of(answer: Answer) -> str:
    """Return one sign for an answer."""
    if answer.fault:
        return "!"
    if answer.refused or answer.busy:
        return "?"
    return "+" if answer.matched else "-"


def never_right(marks: dict[str, dict[str, str]]) -> list[str]:
    """Return the prompts that were never answered rightly when asked plainly."""
    return [name for name, ways in marks.items() if "+" not in ways.get(Way.PLAIN, "")]


def unsteady(marks: dict[str, dict[str, str]]) -> list[str]:
    """Return the prompts that were answered rightly at some times only."""
    return [name for name, ways in marks.items() if {"+", "-"} <= set(ways.get(Way.PLAIN, ""))]


async def run_suite(
    asker: Asker, suite: Suite, target: tuple[str, str], parallel: int, seed: int
) -> list[Answer]:
    """Ask everything once, with so many requests at a time."""
    gate = asyncio.Semaphore(parallel)
    url, model = target

    async def ask(asking: Asking) -> Answer:
        async with gate:
            return await asker.ask("engine", url, model, asking)

    planned = askings(suite, (), Random(seed))
    return list(await asyncio.gather(*(ask(asking) for asking in planned)))


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run the suite as often as asked and return the figures."""
    suite = load_suite(options.suite)
    settings = AgentSettings()
    pace = Pace(parallel=1, health_s=30.0, answer_s=120.0, top_logprobs=options.top_logprobs)
    telemetry = Telemetry("bench", "bench", utc_now())
    reporter = Reporter("bench", "bench", telemetry, lambda _: None, utc_now)
    async with open_upstream(settings) as upstream:
        judging = Judging(reporter, utc_now, settings.vocab_size)
        asker = Asker(upstream, judging, pace, suite.turns, lambda _: 0)
        model = await asker.wait_ready(options.url, pace.health_s)
        if model is None:
            raise SystemExit(f"{options.url} is not ready")
        runs, seconds, results = [], [], []
        for number in range(options.runs):
            for parallel in options.parallel:
                begun = time.monotonic()
                answers = await run_suite(asker, suite, (options.url, model), parallel, number)
                seconds.append({"parallel": parallel, "s": round(time.monotonic() - begun, 2)})
                runs.append(answers)
                results.append(conclude(suite, model, tuple(answers)))
    marks = tally(runs)
    return {
        "model": model,
        "suite_version": suite.version,
        "prompts": len(suite.prompts),
        "seconds": seconds,
        "never_right": never_right(marks),
        "unsteady": unsteady(marks),
        "cached_wrong": [one.details["prefix"]["cached_wrong"] for one in results],
        "shares": [round(one.share, 3) for one in results],
        "marks": marks,
    }


def main() -> int:
    """Read the arguments, measure, print JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--suite", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--parallel", type=int, nargs="+", default=[2])
    parser.add_argument("--top-logprobs", type=int, default=20)
    figures = asyncio.run(measure(parser.parse_args()))
    json.dump(figures, sys.stdout, indent=1, ensure_ascii=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
