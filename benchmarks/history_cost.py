"""What a verdict costs the manager's store on ten thousand, a hundred thousand, a million of them.

Each size has a database of its own, filled by the server: the same instances and lives, spread over
the days that are kept. Then every size takes a batch in turn, beside a bare insert of as many rows,
so that other work on the machine falls on all of them: read the ratios.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

import psycopg
from sqlalchemy.ext.asyncio import AsyncEngine

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.manager import bare_insert, bring_up, database, servers, verdicts

from gatemesh_common.broker import VERDICTS
from gatemesh_common.clock import utc_now
from gatemesh_common.database import open_database
from gatemesh_health_manager.days import day_of
from gatemesh_health_manager.policy import parse_policy
from gatemesh_health_manager.store import Store
from gatemesh_mesh.postgres import plain_url

BATCH = 200
KEPT_DAYS = 30
INBOX_HOURS = 72
WARM_UP = 2
# No condition ends a life here, so that windows are counted with every batch.
RULES = "[defaults.condition_a]\nmore_than = 10000\n[defaults.probes]\nenabled = false\n"

# The last hours stay free: how much a window holds is a matter of traffic, not of history.
FILL = """
    INSERT INTO verdicts (message_id, instance_id, pool, incarnation, request_id, check_level,
        outcome, reason, hard, score, threshold, type, model_version, choice, prompt_key, decoding,
        details, "timestamp", counted_at, received_at)
    SELECT md5(g::text), 'engine-' || g % 8, 'default', 1, 'request-' || g, 'L1', 'failed',
        'repetition', false, 0.9, 0.4, 'verdict', 'benchmark', 0, 'prompt-' || g % 997, 'sampled',
        '{{"rule": "run", "length": 41, "period": 1}}', at, at, at
    FROM (SELECT g, now() - interval '2 hours'
            - interval '{days} days' * (g::float8 / {count}) AS at
        FROM generate_series(1, {count}) AS g) AS made"""
SEEN = """
    INSERT INTO inbox (queue, message_id, seen_at) SELECT '{queue}', message_id, received_at
    FROM verdicts WHERE received_at > now() - interval '{hours} hours'"""


@dataclass(frozen=True)
class Cost:
    """What a verdict costs on one size of history."""

    stored: int
    us: float
    """Median microseconds of the store for one verdict."""
    against_smallest: float
    """Median of the ratios to the smallest history, batch by batch."""
    against_bare: float
    """Median of the ratios to a bare insert of the same rows into the same table."""


def fill(url: str, count: int) -> None:
    """Store verdicts of the days that are kept, and their ids as far back as ids are kept."""
    with psycopg.connect(plain_url(url), autocommit=True) as connection:
        connection.execute("SET timezone TO 'UTC'")
        for ago in range(1, KEPT_DAYS + 2):
            day = day_of(utc_now() - timedelta(days=ago))
            connection.execute(
                f"CREATE TABLE verdicts_{day.begin:%Y%m%d} PARTITION OF verdicts "
                f"FOR VALUES FROM ('{day.begin}') TO ('{day.end}')".encode()
            )
        connection.execute(FILL.format(days=KEPT_DAYS, count=count).encode())
        connection.execute(SEEN.format(queue=VERDICTS.name, hours=INBOX_HOURS).encode())
        connection.execute("ANALYZE")


class Bench:
    """One size of history, and the time that each of its batches took."""

    def __init__(self, url: str, stored: int) -> None:
        self.url = url
        self.stored = stored
        self.engine: AsyncEngine = open_database(url, deadline_s=120)
        self.store = Store(self.engine, parse_policy(RULES), utc_now)
        self.taken_s: list[float] = []
        self.bare_s: list[float] = []

    async def take(self) -> None:
        """Take one batch, and insert as many rows bare."""
        ready = verdicts(BATCH)
        began = time.perf_counter()
        await self.store.apply_verdicts(VERDICTS.name, ready)
        self.taken_s.append(time.perf_counter() - began)
        bare = await asyncio.to_thread(bare_insert, self.url, BATCH)
        self.bare_s.append(BATCH / bare.per_s)


async def measure(benches: Sequence[Bench], rounds: int) -> list[Cost]:
    """Take batches in turn."""
    for bench in benches:
        await bring_up(bench.store, bench.url)
    for _ in range(WARM_UP + rounds):
        for bench in benches:
            await bench.take()
    for bench in benches:
        await bench.engine.dispose()
    return [cost_of(bench, benches[0]) for bench in benches]


def cost_of(bench: Bench, smallest: Bench) -> Cost:
    """Return the cost of a size, the first batches left out."""
    taken, bare = bench.taken_s[WARM_UP:], bench.bare_s[WARM_UP:]
    return Cost(
        bench.stored,
        statistics.median(taken) / BATCH * 1e6,
        middle_ratio(taken, smallest.taken_s[WARM_UP:]),
        middle_ratio(taken, bare),
    )


def middle_ratio(some: Sequence[float], others: Sequence[float]) -> float:
    """Return the median of the ratios, pair by pair."""
    return statistics.median(a / b for a, b in zip(some, others, strict=True))


def run(sizes: Sequence[int], rounds: int) -> list[Cost]:
    """Make the databases, fill them, and measure."""
    with ExitStack() as stack:
        _, server = stack.enter_context(servers())
        benches = []
        for size in sizes:
            url = stack.enter_context(database(server))
            began = time.perf_counter()
            fill(url, size)
            print(f"{size:,} verdicts made in {time.perf_counter() - began:.0f} s", flush=True)
            benches.append(Bench(url, size))
        return asyncio.run(measure(benches, rounds))


def show(costs: Sequence[Cost]) -> None:
    """Print the table."""
    print(f"{'stored':>12} {'us/verdict':>12} {'of smallest':>12} {'of bare insert':>15}")
    for cost in costs:
        row = f"{cost.stored:12,} {cost.us:12.0f} {cost.against_smallest:12.2f}"
        print(f"{row} {cost.against_bare:15.2f}")


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=20, help="batches of each size")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    costs = run(arguments.sizes, arguments.rounds)
    show(costs)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(cost) for cost in costs], indent=2))


if __name__ == "__main__":
    main()
