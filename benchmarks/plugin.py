"""What figures cost on a real engine: tokens/s with none, log probabilities, the plugin, and more.

Each engine life asks all ways in turn, round by round, so that a busy machine slows all alike.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from gatemesh_agent.exact_lines import lines_of
from gatemesh_agent.gates.l3_exact import ExactStep
from gatemesh_agent.vocabulary import NO_TOKEN, size_in
from gatemesh_mesh.engine_machine import pick_cores, usable_cores
from gatemesh_mesh.ports import LOOPBACK
from gatemesh_mesh.real_engine import MODEL_NAME, EngineOptions, engine_command, layout_of
from gatemesh_mesh.stack import REPOSITORY
from gatemesh_mesh.state import state_folder

START_S = 240.0
OK = 200
PROMPT = "Write a long story about a ship and the sea, number {}."
WAYS: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    "top10": {"logprobs": True, "top_logprobs": 10},
    "top20": {"logprobs": True, "top_logprobs": 20},
    "quarter": {"logprobs": True, "top_logprobs": 20},
    "plugin": {"vllm_xargs": {"probe_id": "bench"}},
    "both": {"logprobs": True, "top_logprobs": 20, "vllm_xargs": {"probe_id": "bench"}},
}
SAMPLED = "quarter"
EVERY = 4
"""Of the requests of that way every fourth is asked, as with GATEMESH_AGENT_LOGPROBS_SHARE=0.25."""


def wishes(way: str, number: int) -> Mapping[str, Any]:
    """Return what is asked with one request of a way."""
    return {} if way == SAMPLED and number % EVERY else WAYS[way]


@dataclass(frozen=True)
class Load:
    """How much is asked in one go."""

    at_once: int
    tokens: int
    rounds: int


@contextmanager
def engine(every: int, figures: Path, log: Path) -> Iterator[str]:
    """Run one life of the real engine on one core; hand out its address."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port = int(probe.getsockname()[1])
    layout = layout_of(state_folder(os.environ, REPOSITORY))
    options = EngineOptions(port, pick_cores(usable_cores(), 1)[0], plugin_socket=figures)
    command = engine_command(layout, options)
    environment = {**os.environ, **command.environment, "GATEMESH_PLUGIN_EVERY": str(every)}
    with log.open("ab") as out:
        process = subprocess.Popen(
            command.argv, env=environment, stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield f"http://{LOOPBACK}:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


async def await_ready(session: aiohttp.ClientSession, address: str) -> float:
    """Return the seconds until the engine answers; raises where it does not in time."""
    begun = time.monotonic()
    async with asyncio.timeout(START_S):
        while not await is_ready(session, address):  # noqa: ASYNC110 - it is another process
            await asyncio.sleep(0.5)
    return time.monotonic() - begun


async def is_ready(session: aiohttp.ClientSession, address: str) -> bool:
    """Return True when the engine answers."""
    try:
        async with session.get(f"{address}/health") as reply:
            return reply.status == OK
    except aiohttp.ClientError:
        return False


async def ask(session: aiohttp.ClientSession, address: str, number: int, **more: Any) -> int:
    """Ask for one answer; return how many tokens it has."""
    messages = [{"role": "user", "content": PROMPT.format(number)}]
    body = {"model": MODEL_NAME, "messages": messages, "temperature": 0, **more}
    async with session.post(f"{address}/v1/chat/completions", json=body) as reply:
        answer = await reply.json()
    return int(answer["usage"]["completion_tokens"])


async def speed(session: aiohttp.ClientSession, address: str, load: Load, way: str) -> float:
    """Return the tokens per second of one go."""
    begun = time.monotonic()
    more = {"max_tokens": load.tokens, "ignore_eos": True}
    counts = await asyncio.gather(
        *(
            ask(session, address, number, **more, **wishes(way, number))
            for number in range(load.at_once)
        )
    )
    return sum(counts) / (time.monotonic() - begun)


async def vocabulary(session: aiohttp.ClientSession, address: str) -> int | None:
    """Return the size that the engine names when it refuses a token that is none."""
    body = {
        "model": MODEL_NAME,
        "prompt": "a",
        "max_tokens": 1,
        "logit_bias": {str(NO_TOKEN): 1},
    }
    async with session.post(f"{address}/v1/completions", json=body) as reply:
        return size_in(await reply.read())


async def one_life(address: str, load: Load, reader: socket.socket) -> dict[str, Any]:
    """Measure every way, in turn; return speeds, ratios and what the plugin told."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(300)) as session:
        started_s = await await_ready(session, address)
        size = await vocabulary(session, address)
        await speed(session, address, load, "both")
        drain(reader)
        speeds: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(load.rounds):
            for way, found in speeds.items():
                found.append(await speed(session, address, load, way))
        await asyncio.sleep(0.5)
    ratios = {
        way: statistics.median(a / b for a, b in zip(found, speeds["none"], strict=True))
        for way, found in speeds.items()
    }
    return {
        "started_s": round(started_s, 1),
        "vocabulary": size,
        "tokens_per_s": {way: round(statistics.median(each), 1) for way, each in speeds.items()},
        "ratio_to_none": {way: round(ratio, 3) for way, ratio in ratios.items()},
        "lines": drain(reader),
    }


def drain(reader: socket.socket) -> dict[str, int]:
    """Take what the plugin sent; return how many lines of each kind."""
    steps = choices = 0
    while True:
        try:
            packet = reader.recv(65_535)
        except BlockingIOError:
            return {"steps": steps, "choices": choices}
        for line in lines_of(packet):
            is_step = isinstance(line.figures, ExactStep)
            steps += is_step
            choices += not is_step


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure engine lives with figures of every 8th and of every step, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="for socket and log")
    parser.add_argument("--every", type=int, nargs="+", default=[8, 1])
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    load = Load(options.at_once, options.tokens, options.rounds)
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "bench.sock"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
        reader.setblocking(False)  # noqa: FBT003
        reader.bind(str(path))
        for every in options.every:
            with engine(every, path, options.folder / "engine.log") as address:
                found = asyncio.run(one_life(address, load, reader))
            sys.stdout.write(json.dumps({"every": every, **found}) + "\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
