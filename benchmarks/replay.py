"""Replay a made-up history, and say how fast, and whether every decision is the same.

    python benchmarks/replay.py [--verdicts N] [--instances N] [--json OUT]

The bare path of the same run writes the same history as JSON Lines and decides nothing.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.recorded import DAWN, MadeUpPool

from gatemesh_health_manager.comparing import repeat
from gatemesh_health_manager.history import History, lines_of

VERDICTS_PER_S = 100


def measure(verdicts: int, instances: int) -> dict[str, Any]:
    """Make a history, replay it, and return the figures."""
    pool = MadeUpPool([f"engine-{number}" for number in range(instances)])
    pool.live(verdicts // VERDICTS_PER_S, VERDICTS_PER_S)
    history = pool.recorder.history()
    begun_s = time.perf_counter()
    found = repeat(history, DAWN)
    took_s = time.perf_counter() - begun_s
    return {
        "verdicts": found.verdicts,
        "transitions": found.transitions,
        "identical": not found.differences,
        "verdicts_per_s": round(found.verdicts / took_s),
        "ratio_to_writing": round(write_s(history) / took_s, 3),
    }


def write_s(history: History) -> float:
    """Return the time to write the same history down as JSON Lines, the bare path."""
    begun_s = time.perf_counter()
    sum(len(line) for line in lines_of(history))
    return time.perf_counter() - begun_s


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--verdicts", type=int, default=100_000)
    parser.add_argument("--instances", type=int, default=8)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures as JSON")
    options = parser.parse_args(argv)
    found = measure(options.verdicts, options.instances)
    print(json.dumps(found, indent=2))
    if options.json:
        options.json.write_text(json.dumps(found))
    return 0 if found["identical"] else 1


if __name__ == "__main__":
    sys.exit(main())
