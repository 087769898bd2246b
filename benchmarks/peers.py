"""Measure the agent beside other gateways, all in one run and on the same engines.

    python benchmarks/peers.py [--seconds S] [--rounds N] [--only NAME,...] [--json OUT]
                               [--memory-minutes M]

Four engines that cost nothing stand behind each gateway, which has one process or thread for the
traffic. Gateways take turns, round after round, the first one to warm up; medians are compared, and
the direct connection's mean is taken off latencies. Client, engines and gateway share the cores of
the machine, so that what a gateway can do at most says more of the machine than of the gateway:
the CPU time of its own processes per request and chunk is the figure that stays true. What is not
installed is got from its registry into the state folder, or left out with the reason.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import uvloop

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.agent import free_ports
from benchmarks.peer_load import Ask, Tally, closed_loop, open_loop
from benchmarks.peer_mock import mocks
from benchmarks.peer_programs import CHAT, MAKERS, MissingError, Place, Running, started
from benchmarks.peer_report import Figures, figures_of, ratios_of, show

from gatemesh_mesh.stack import REPOSITORY
from gatemesh_mesh.state import state_folder

ENGINES = 4
MODEL = "bench"
SMALL = 8
STREAM = 64
PACED = 30
WARM_UP_S = 1.0


@dataclass(frozen=True)
class Load:
    """One kind of traffic."""

    name: str
    tokens: int
    stream: bool = False
    clients: int = 0
    """At once, each asking again and again; 0 for a rate."""
    per_s: float = 0.0
    """Requests sent in a second, whatever became of those before."""
    pace_ms: int = 0
    spread_s: float = 0.0
    """Time over which the first streams begin; then they end and begin all the time."""


def pace_of(options: argparse.Namespace) -> int:
    """Return the ms between two chunks of one of 256 paced streams."""
    per_s: float = options.chunks_per_s
    return round(256 / per_s * 1000)


def loads_of(options: argparse.Namespace) -> list[Load]:
    """Return the loads of a run."""
    pace_ms = pace_of(options)
    stream_s = PACED * pace_ms / 1000
    return [
        Load("whole x1", SMALL, clients=1),
        Load("whole x64", SMALL, clients=64),
        *(Load(f"whole {rate:.0f}/s", SMALL, per_s=rate) for rate in options.rates),
        Load("stream x1", STREAM, stream=True, clients=1),
        Load("stream x64", STREAM, stream=True, clients=64),
        Load("stream x256", STREAM, stream=True, clients=256),
        Load("paced x256", PACED, stream=True, clients=256, pace_ms=pace_ms, spread_s=stream_s),
    ]


@dataclass(frozen=True)
class Way:
    """One way to the engines: a gateway, or none."""

    name: str
    port: int
    path: str
    running: Running | None


def run_load(way: Way, load: Load, seconds: float) -> tuple[Tally, float, int]:
    """Run one load by one way; return what it gave, and the gateway's CPU time and memory."""
    ask = Ask(way.path, MODEL, load.tokens, load.stream, load.pace_ms)
    before_s = way.running.cpu_s() if way.running else 0.0
    if load.clients:
        # Several lengths of a stream, else all would end as they began.
        seconds = max(seconds, 4 * load.spread_s)
        tally = uvloop.run(closed_loop(way.port, ask, load.clients, seconds, load.spread_s))
    else:
        tally = uvloop.run(open_loop(way.port, ask, load.per_s, seconds))
    if way.running is None:
        return tally, 0.0, 0
    return tally, way.running.cpu_s() - before_s, way.running.memory_bytes()


def measure(ways: Sequence[Way], loads: Sequence[Load], options: argparse.Namespace) -> Any:
    """Return the figures by load and way; the ways take turns."""
    results: dict[str, dict[str, Any]] = {}
    for load in loads:
        for way in ways:
            run_load(way, replace(load, spread_s=0.0), WARM_UP_S)
        rounds = [turn(ways, load, options.seconds) for _ in range(options.rounds)]
        results[load.name] = {
            way.name: middle([found[way.name] for found in rounds]) for way in ways
        }
        sys.stderr.write(f"{load.name} done\n")
    return results


def turn(ways: Sequence[Way], load: Load, seconds: float) -> dict[str, Figures]:
    """Return what every way gave in one round."""
    return {way.name: figures_of(*run_load(way, load, seconds)) for way in ways}


def middle(found: Sequence[Figures]) -> dict[str, float]:
    """Return the median of each figure over the rounds."""
    rows = [asdict(each) for each in found]
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def watch_memory(way: Way, minutes: float, pace_ms: int) -> list[dict[str, float]]:
    """Return the memory of a gateway under 256 streams, ten times over so many minutes."""
    running = way.running
    assert running is not None
    seen = []
    begun_s = time.monotonic()
    for _ in range(10):
        ask = Ask(way.path, MODEL, PACED, stream=True, pace_ms=pace_ms)
        uvloop.run(closed_loop(way.port, ask, 256, minutes * 6))
        at_s = time.monotonic() - begun_s
        seen.append({"at_s": round(at_s), "mib": running.memory_bytes() / 2**20})
    return seen


def per_token_at_length(way: Way, tokens: int = 30_000) -> dict[str, float]:
    """Return the CPU microseconds per token of streams of 1,000 and of so many tokens."""
    found = {}
    for length in (1_000, tokens):
        ask = Ask(way.path, MODEL, length, stream=True)
        run_load(way, Load("warm", length, stream=True, clients=1), 0.1)
        before_s = way.running.cpu_s() if way.running else 0.0
        tally = uvloop.run(closed_loop(way.port, ask, 1, 3.0))
        spent_s = (way.running.cpu_s() if way.running else 0.0) - before_s
        found[str(length)] = spent_s / max(tally.chunks, 1) * 1e6
    return found


def open_ways(
    stack: ExitStack, engines: Sequence[int], names: Sequence[str]
) -> tuple[list[Way], dict[str, str]]:
    """Start every gateway that can be had; return the ways, and why others are missing."""
    state = state_folder(os.environ, REPOSITORY).root / "peers"
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gatemesh-peers-")))
    ways = [Way("direct", engines[0], CHAT, None)]
    missing: dict[str, str] = {}
    for name in names:
        port, spare = free_ports(2)
        place = Place(folder, state, port, spare, engines)
        try:
            launch = MAKERS[name](place)
            running = stack.enter_context(started(name, launch, place))
        except MissingError as error:
            missing[name] = str(error)
        else:
            ways.append(Way(name, port, launch.path, running))
    return ways, missing


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one run, s")
    parser.add_argument("--rounds", type=int, default=3, help="runs that count")
    parser.add_argument("--rates", type=rates, default=(100.0,), help="requests/s, comma-separated")
    parser.add_argument("--chunks-per-s", type=float, default=2560, help="of the paced streams")
    parser.add_argument("--only", default=",".join(MAKERS), help="gateways")
    parser.add_argument("--loads", default="", help="only loads whose names begin so")
    parser.add_argument("--memory-minutes", type=float, default=0.0, help="of 256 streams")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args(arguments)


def rates(text: str) -> tuple[float, ...]:
    """Read rates, comma-separated."""
    return tuple(float(part) for part in text.split(","))


def machine() -> Mapping[str, Any]:
    """Return what the figures were taken on."""
    return {
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print it."""
    options = read_options(arguments)
    names = options.only.split(",")
    with ExitStack() as stack:
        engines = free_ports(ENGINES)
        stack.enter_context(mocks(engines))
        ways, missing = open_ways(stack, engines, names)
        loads = [each for each in loads_of(options) if each.name.startswith(options.loads)]
        report: dict[str, Any] = {"machine": machine(), "missing": missing}
        report["results"] = measure(ways, loads, options)
        own = next((way for way in ways if way.name == "agent"), None)
        if own is not None:
            report["us_per_token_by_length"] = per_token_at_length(own)
            if options.memory_minutes:
                report["memory"] = watch_memory(own, options.memory_minutes, pace_of(options))
    report["ratios"] = ratios_of(report["results"])
    show(report)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
