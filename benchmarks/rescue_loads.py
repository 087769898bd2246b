"""Loads of the rescue benchmark: clean streams, dying engines, many streams, a very long one."""

import argparse
import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
from benchmarks.rescuing import (
    CHAT,
    QUICK_TO_DOUBT,
    Read,
    Rig,
    ask,
    ask_many,
    body_of,
    new_session,
    running_rig,
    word_of,
)

AGENT, OBSERVER, DIRECT = "agent", "observer", "direct"
TOLD = ("rescue", "held", "continuations")
QUANTILES = {"p50": 0.5, "p99": 0.99}
CLEAN_TOKENS = 60
WARM_UP = 40
CROWD = 100
CROWD_TOKENS = 160
CROWD_FLAGS = ("--tokens-per-s", "16")
BEGIN_DEADLINE_S = 60.0
MEMORY_FLAGS = ("--tokens-per-s", "10")
SAMPLES = 10
LONG = 30_000
MEMORY_TOKENS = 100
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def share(ordered: Sequence[float], at: float) -> float:
    """Return a quantile of sorted figures, in milliseconds."""
    return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * at))]


def clean(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return what rescue does to streams that nothing is wrong with."""
    agents = {AGENT: options.rescue, OBSERVER: {"GATEMESH_AGENT_GUARD": "observe"}}
    with running_rig(folder, agents, victim_first=False) as rig:
        return asyncio.run(clean_streams(rig, options.clean, options.clean_clients))


async def clean_streams(rig: Rig, count: int, clients: int) -> dict[str, Any]:
    """Ask through the agent, through one that only observes, and directly, all in one run."""
    await in_turns(rig, range(-WARM_UP, 0), clients)
    answered = await asyncio.to_thread(rig.answered_by_engines)
    before = await asyncio.to_thread(rig.metrics, AGENT, *TOLD)
    found = await in_turns(rig, range(count), clients)
    asked = await asyncio.to_thread(rig.answered_by_engines) - answered
    after = await asyncio.to_thread(rig.metrics, AGENT, *TOLD)
    through, direct = found[AGENT], found[DIRECT]
    differ = sum(one.text != other.text for one, other in zip(through, direct, strict=True))
    return {
        "streams": count,
        "clients at once": clients,
        "not whole": sum(not one.is_whole for one in through),
        "text differs from direct": differ,
        "requests that engines got beyond the clients' own": asked - len(found) * count,
        **first_tokens(found),
        "all streams took s": sum(one.wall_s for one in through),
        "agent": {name: after[name] - before.get(name, 0.0) for name in sorted(after)},
    }


def first_tokens(found: Mapping[str, Sequence[Read]]) -> dict[str, float]:
    """Return the time to the first token: directly, and what each agent adds to it."""
    times = {path: sorted(one.first_s for one in reads) for path, reads in found.items()}
    told = {}
    for name, at in QUANTILES.items():
        direct = share(times[DIRECT], at)
        told[f"first token, direct {name} ms"] = direct
        for path, words in ((OBSERVER, "observing"), (AGENT, "rescue")):
            told[f"first token, added by {words} {name} ms"] = share(times[path], at) - direct
    return told


async def in_turns(rig: Rig, numbers: range, clients: int) -> dict[str, list[Read]]:
    """Ask each question on every path, in changing order, by a few clients."""
    paths: tuple[str, ...] = (AGENT, OBSERVER, DIRECT)
    urls = {path: rig.url(None if path == DIRECT else path, CHAT) for path in paths}
    found: dict[str, list[Read]] = {path: [Read()] * len(numbers) for path in paths}
    queue = iter(enumerate(numbers))

    async def client() -> None:
        async with new_session() as session:
            for place, number in queue:
                body = body_of(CHAT, clean_question(number), CLEAN_TOKENS, stream=True)
                first = number % len(paths)
                for path in (*paths[first:], *paths[:first]):
                    found[path][place] = await ask(session, urls[path], body)

    await asyncio.gather(*(client() for _ in range(clients)))
    return found


def clean_question(number: int) -> str:
    """Return one of many questions in two languages, some with long answers."""
    kinds = (
        "Explain {} to a child.",
        "请解释{}。",
        "Write a short list about {}.",
        "Tell me about {}, length 1200.",
    )
    return kinds[number % len(kinds)].format(word_of(number))


def deaths(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return what a hundred clients see of an engine that is killed, and of one that hangs."""
    found = {}
    for name, blow in BLOWS.items():
        with running_rig(
            folder / name.replace(" ", "-"),
            {AGENT: {**QUICK_TO_DOUBT, **options.rescue}},
            victim_first=False,
            engine_flags=CROWD_FLAGS,
        ) as rig:
            found[name] = asyncio.run(crowd(rig, blow))
    return found


async def crowd(rig: Rig, blow: Callable[[Rig], None]) -> dict[str, Any]:
    """Strike one engine while a crowd streams."""
    bodies = [
        body_of(CHAT, f"Tell me about {word_of(number)}, length 1200.", CROWD_TOKENS, stream=True)
        for number in range(CROWD)
    ]
    begun = asyncio.Event()
    asked = asyncio.create_task(ask_many(rig.url(AGENT, CHAT), bodies, begun))
    async with asyncio.timeout(BEGIN_DEADLINE_S):
        await begun.wait()
    await asyncio.to_thread(blow, rig)
    answers = await asked
    await asyncio.to_thread(rig.victim.end, signal.SIGKILL)
    uncut = await ask_many(rig.url(None, CHAT), bodies)
    gaps = sorted(one.largest_gap_s for one in answers)
    return {
        "streams": len(answers),
        "whole and equal": sum(
            one.is_whole and one.text == other.text
            for one, other in zip(answers, uncut, strict=True)
        ),
        "with one id": sum(len(one.ids) == 1 for one in answers),
        "client errors": sum(not one.is_whole for one in answers),
        "errors": failed(answers),
        "longest silence, most ms": 1000 * gaps[-1],
    }


def failed(answers: Sequence[Read]) -> str:
    """Return how answers failed, each kind with its count."""
    counts = Counter(one.error or f"status {one.status}" for one in answers if not one.is_whole)
    return ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"


BLOWS: Mapping[str, Callable[[Rig], None]] = {
    "killed": lambda rig: rig.victim.end(signal.SIGKILL),
    "stopped": lambda rig: os.kill(rig.victim.pid, signal.SIGSTOP),
    "told to end": lambda rig: os.kill(rig.victim.pid, signal.SIGTERM),
}


def memory(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return the agent's memory while many streams run."""
    with running_rig(
        folder, {AGENT: options.rescue}, victim_first=False, engine_flags=MEMORY_FLAGS
    ) as rig:
        return asyncio.run(many_streams(rig, options.streams, options.memory_s))


async def many_streams(rig: Rig, streams: int, seconds: float) -> dict[str, Any]:
    """Keep so many streams running for a while, one after the other ends, and see the memory."""
    until_s = time.monotonic() + seconds
    answers: list[Read] = []

    async def client(session: aiohttp.ClientSession, first: int) -> None:
        number = first
        while time.monotonic() < until_s:
            question = f"Tell me about {word_of(number)}, length {LONG}."
            body = body_of(CHAT, question, MEMORY_TOKENS, stream=True)
            answers.append(await ask(session, rig.url(AGENT, CHAT), body))
            number += streams

    async with new_session() as session:
        asked = [asyncio.create_task(client(session, number)) for number in range(streams)]
        seen = []
        for _ in range(SAMPLES):
            await asyncio.sleep(seconds / SAMPLES)
            seen.append(resident_mib(rig.agents[AGENT].pid))
        await asyncio.gather(*asked)
    return {
        "streams at once": streams,
        "seconds": seconds,
        "streams": len(answers),
        "tokens": sum(one.events for one in answers),
        "errors": failed(answers),
        "resident MiB over time": ", ".join(f"{one:.0f}" for one in seen),
    }


def long_stream(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return what a token costs the agent at the beginning and at the end of a long stream."""
    with running_rig(folder, {AGENT: options.rescue}) as rig:
        return asyncio.run(one_long(rig, options.long_tokens))


async def one_long(rig: Rig, tokens: int) -> dict[str, Any]:
    """Read one stream, noting the agent's processor time at every tenth of it."""
    words = tokens
    body = body_of(CHAT, f"Tell me about the sea, length {words}.", tokens, stream=True)
    pid, every = rig.agents[AGENT].pid, tokens // SAMPLES
    marks = [(time.perf_counter(), cpu_s(pid))]
    events = 0
    async with new_session() as session, session.post(rig.url(AGENT, CHAT), json=body) as response:
        async for line in response.content:
            events += line.startswith(b"data: {")
            if line.startswith(b"data: {") and events % every == 0:
                marks.append((time.perf_counter(), cpu_s(pid)))
    pieces = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(marks)]
    return {
        "events": events,
        "agent's CPU per token by tenth, µs": ", ".join(
            f"{1e6 * cpu / every:.0f}" for _, cpu in pieces
        ),
        "time per token by tenth, µs": ", ".join(f"{1e6 * wall / every:.0f}" for wall, _ in pieces),
        "resident MiB at its end": resident_mib(pid),
    }


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def resident_mib(pid: int) -> float:
    """Return the memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / 2**20
