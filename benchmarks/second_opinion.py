"""Measure what second opinions, samples and transcripts cost in the agent.

    python benchmarks/second_opinion.py [--requests N] [--json OUT]

Two simulated engines stand behind one agent in this process. One of them emits NaN: each request
that meets it brings a hard verdict, which waits for the other engine's answer to the same request.
Printed is for how long, by kind of delivery; then the CPU time that the keeping of an answer, the
choice of a sample and its making take. Engines, agent and client share the machine's cores.
"""

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
from multidict import CIMultiDict

from gatemesh_agent.after import Answered
from gatemesh_agent.attribution import ClientRequest
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.reading import CallParts, Reading
from gatemesh_agent.reporting import Life, Origin
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.sampling import SampleTerms, Sampling, sample_of
from gatemesh_agent.service import build_agent, listening
from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.signs import Signs, note_of
from gatemesh_agent.transcript import Transcript
from gatemesh_agent.upstream import Order
from gatemesh_common.messages import Verdict
from gatemesh_common.publisher import envelope

CHAT = "/v1/chat/completions"
TOKENS = 200
NOWHERE = "amqp://nobody:nothing@127.0.0.1:1/"


def start_engine(name: str) -> tuple[subprocess.Popen[str], str]:
    """Start a simulated engine on a free port; return process and address."""
    command = [sys.executable, "-m", "gatemesh_engine_sim", "--port", "0", "--name", name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if "engine_ready" in line:
            return process, line.split("engine_ready ")[1].strip()
    raise RuntimeError(f"{name} ended before it was ready")


def settings_of(engines: dict[str, str], folder: Path) -> AgentSettings:
    """Return an agent's settings without a broker."""
    return AgentSettings.model_validate(
        {
            "port": 0,
            "instances": engines,
            "spool_dir": folder,
            "fingerprint_key": "0123456789abcdef",
            "attribution_per_minute": 10_000,
            "GATEMESH_AMQP_URL": NOWHERE,
        }
    )


async def waits(settings: AgentSettings, requests: int, *, stream: bool) -> list[float]:
    """Return for how long each hard verdict was withheld, seconds."""
    found: list[Verdict] = []
    async with build_agent(settings) as agent, listening(agent) as url:
        agent.guarding.reporter.heeds.append(found.append)
        await ask(url, requests, stream=stream)
        await agent.guarding.opinions.settle()
    return [each.details["attributed_after_s"] for each in found if each.hard]


async def ask(url: str, requests: int, *, stream: bool) -> None:
    """Send so many requests, one after the other."""
    async with aiohttp.ClientSession() as session:
        for number in range(requests):
            body = question(number, stream=stream)
            async with session.post(url + CHAT, json=body) as response:
                await response.read()


def question(number: int, *, stream: bool) -> dict[str, Any]:
    """Return a request that was never asked before."""
    message = {"role": "user", "content": f"Tell me about {number}."}
    return {"model": "sim", "messages": [message], "max_tokens": 64, "stream": stream}


def answer() -> Answered:
    """Return a clean answer of 200 tokens."""
    body = json.dumps(question(1, stream=False)).encode()
    asked = understand(Route.CHAT, body)
    request = ClientRequest(asked, Origin("R1"), Order("POST", CHAT, CIMultiDict(), body))
    first = watched()
    first.end("stop", CallParts())
    return Answered(request, Life("e", 1, "m", numbered=True), first, (), True, False)  # noqa: FBT003


READINGS = [
    Reading(" word", (TokenStep(" word", -0.5 - number / TOKENS, token_id=number),), False, ())  # noqa: FBT003
    for number in range(TOKENS)
]


def watched() -> Transcript:
    """Return what is kept of 200 tokens."""
    first = Transcript()
    for reading in READINGS:
        first.take(reading)
    return first


def cpu_us(operation: Callable[[], object], rounds: int) -> float:
    """Return the median CPU time of an operation, microseconds."""
    times = []
    for _ in range(rounds):
        begun_s = time.process_time()
        operation()
        times.append((time.process_time() - begun_s) * 1e6)
    return statistics.median(times)


def costs() -> dict[str, float]:
    """Return the CPU time of each part, microseconds."""
    given, now = answer(), datetime.now(UTC)
    sampling = Sampling(SampleTerms(), random.Random(1), lambda _: False)
    signs = Signs()
    return {
        "transcript_per_token": cpu_us(watched, 200) / TOKENS,
        "choice_per_answer": cpu_us(lambda: sampling.cause_of(given, 0.0), 2000),
        "signs_per_answer": cpu_us(
            lambda: signs.answered(given.life, note_of(given.first, "p", 0.0)), 2000
        ),
        "sample_of_200_tokens": cpu_us(
            lambda: envelope(sample_of(given, "random", "a", "p", now), "agent"), 500
        ),
    }


def summary(waited: Sequence[float]) -> dict[str, float]:
    """Return what is told of many waits, milliseconds."""
    ranked = sorted(waited)
    return {
        "verdicts": len(ranked),
        "p50_ms": round(statistics.median(ranked) * 1e3, 1),
        "p99_ms": round(ranked[min(len(ranked) - 1, int(len(ranked) * 0.99))] * 1e3, 1),
        "max_ms": round(ranked[-1] * 1e3, 1),
    }


async def measure(requests: int, folder: Path) -> dict[str, Any]:
    """Return all figures."""
    started = {name: start_engine(name) for name in ("engine-0", "engine-1")}
    settings = settings_of({name: address for name, (_, address) in started.items()}, folder)
    try:
        async with aiohttp.ClientSession() as session:
            fault = f"{settings.instances['engine-0']}/sim/fault"
            await session.post(fault, json={"fault": "nan"})
        return {
            "stream": summary(await waits(settings, requests, stream=True)),
            "whole": summary(await waits(settings, requests, stream=False)),
            "cpu_us": {name: round(value, 2) for name, value in costs().items()},
        }
    finally:
        for process, _ in started.values():
            process.kill()
            process.wait()


def main() -> int:
    """Measure, print, and store if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measure(options.requests, Path(folder)))
    written = json.dumps(figures, indent=1)
    sys.stdout.write(written + "\n")
    if options.json is not None:
        options.json.write_text(written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
