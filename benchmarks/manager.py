"""Verdicts per second into SQL: the manager's real path and its store, beside bare inserts.

Starts a broker and a database of its own. All figures come from one run on one machine; read the
ratios.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from gatemesh_common.broker import VERDICTS, declare_topology
from gatemesh_common.clock import utc_now
from gatemesh_common.database import open_database
from gatemesh_common.messages import (
    CheckLevel,
    InstanceObserved,
    InstanceState,
    Outcome,
    Reason,
    Verdict,
)
from gatemesh_common.publisher import Publisher
from gatemesh_health_manager.intake import LARGEST_BATCH
from gatemesh_health_manager.migrate import find_migrations, upgrade
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import InstanceRecord
from gatemesh_health_manager.store import Store
from gatemesh_health_manager.store_rows import VERDICT_NAMES, verdict_values
from gatemesh_mesh import nodes, postgres
from gatemesh_mesh.ports import choose_ports
from gatemesh_mesh.progress import SilentProgress
from gatemesh_mesh.state import StateFolder
from gatemesh_mesh.supervision import Supervision

INSTANCES = 8
PROMPTS = 5
BATCH = LARGEST_BATCH
"""What the manager takes at once when more waits; the bare insert gets no less."""
HISTORY_SHARE = 5
"""How many times as many verdicts lie in the table when growth is measured."""


@dataclass(frozen=True)
class Figure:
    """One way of getting verdicts into the table, and its speed."""

    way: str
    per_s: float
    share: float
    """Of the bare batched insert."""


@contextlib.contextmanager
def servers() -> Iterator[tuple[str, str]]:
    """Give the addresses of a broker and a database of our own."""
    folder = StateFolder(Path(tempfile.mkdtemp(prefix="gatemesh-benchmark-")))
    folder.create()
    supervision = Supervision(folder)
    ports = choose_ports(nodes.node_port_names(), random.Random())
    plan = nodes.plan_nodes(folder, SilentProgress(), ports)
    assert plan.rabbit is not None
    assert plan.postgres is not None
    try:
        supervision.start()
        nodes.start_nodes(supervision, plan, SilentProgress())
        yield plan.rabbit.amqp_url, plan.postgres.url()
    finally:
        supervision.close(last=nodes.PROGRAMS)
        shutil.rmtree(folder.root, ignore_errors=True)


@contextlib.contextmanager
def database(url: str) -> Iterator[str]:
    """Give an empty, migrated database."""
    name = f"benchmark_{uuid.uuid4().hex[:8]}"
    postgres.create_database(url, name)
    own = urlsplit(url)._replace(path=f"/{name}").geturl()
    upgrade(own, find_migrations(None))
    try:
        yield own
    finally:
        postgres.drop_database(url, name)


def verdicts(count: int, hours_ago: int = 0) -> list[Verdict]:
    """Return failures of a few prompts on a few instances, spread over one hour."""
    end = utc_now() - timedelta(hours=hours_ago)
    step = timedelta(hours=1) / count
    return [
        Verdict(
            message_id=uuid.uuid4().hex,
            timestamp=end - step * number,
            instance_id=f"engine-{number % INSTANCES}",
            request_id=f"request-{number}",
            check_level=CheckLevel.L1,
            outcome=Outcome.FAILED,
            reason=Reason.REPETITION,
            incarnation=1,
            score=0.9,
            threshold=0.4,
            model_version="benchmark",
            prompt_fingerprint=f"prompt-{number % PROMPTS}",
            details={"rule": "run", "length": 41, "period": 1},
        )
        for number in range(count)
    ]


def rows(count: int, hours_ago: int) -> list[tuple[object, ...]]:
    """Return the same as rows of the table."""
    now = utc_now()
    records = {
        name: InstanceRecord(name, "default", InstanceState.HEALTHY, now, now, incarnation=1)
        for name in (f"engine-{number}" for number in range(INSTANCES))
    }
    return [
        verdict_values(each, records[each.instance_id], now) for each in verdicts(count, hours_ago)
    ]


def bare_insert(url: str, count: int, hours_ago: int = 0) -> float:
    """Insert rows in batches, one transaction each; return rows per second."""
    ready = rows(count, hours_ago)
    names = sql.SQL(", ").join(map(sql.Identifier, VERDICT_NAMES))
    marks = sql.SQL(", ").join([sql.Placeholder()] * len(VERDICT_NAMES))
    statement = sql.SQL("INSERT INTO verdicts ({}) VALUES ({})").format(names, marks)
    with psycopg.connect(postgres.plain_url(url), autocommit=True) as connection:
        began = time.perf_counter()
        for start in range(0, count, BATCH):
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(statement, ready[start : start + BATCH])
        return count / (time.perf_counter() - began)


async def bring_up(store: Store, url: str) -> None:
    """Have instances in rotation, without anybody to probe them."""
    await store.register_policy()
    for number in range(INSTANCES):
        seen = InstanceObserved(
            timestamp=utc_now(),
            instance_id=f"engine-{number}",
            running=True,
            life_id="life",
            base_url="http://127.0.0.1:1",
        )
        await store.apply_event("benchmark", seen)
    with psycopg.connect(postgres.plain_url(url)) as connection:
        connection.execute(
            "UPDATE instances SET state = 'healthy', weight = 1, ticket_id = NULL, "
            "ticket_purpose = NULL, due_at = NULL"
        )


async def store_alone(url: str, count: int) -> float:
    """Hand batches to the store; return verdicts per second."""
    engine = open_database(url)
    store = Store(engine, Policy(), utc_now)
    await bring_up(store, url)
    ready = verdicts(count)
    began = time.perf_counter()
    for start in range(0, count, BATCH):
        await store.apply_verdicts(VERDICTS.name, ready[start : start + BATCH])
    elapsed_s = time.perf_counter() - began
    await engine.dispose()
    return count / elapsed_s


async def fill_queue(amqp_url: str, url: str, count: int) -> None:
    """Leave verdicts in the manager's queue."""
    engine = open_database(url)
    await bring_up(Store(engine, Policy(), utc_now), url)
    await engine.dispose()
    async with Publisher(amqp_url, "benchmark", deadline_s=60) as publisher:
        await declare_topology(await publisher.channel())
        ready = verdicts(count)
        for start in range(0, count, BATCH):
            batch = ready[start : start + BATCH]
            await asyncio.gather(*(publisher.publish(verdict) for verdict in batch))


def real_path(amqp_url: str, url: str, count: int) -> float:
    """Fill the queue, start a manager, and time it from its first to its last commit."""
    asyncio.run(fill_queue(amqp_url, url, count))
    environment = {
        **os.environ,
        "GATEMESH_AMQP_URL": amqp_url,
        "GATEMESH_DATABASE_URL": url,
        "GATEMESH_HEALTH_MANAGER_ADMIN_PORT": "0",
        "GATEMESH_LOG_LEVEL": "WARNING",
    }
    manager = subprocess.Popen([sys.executable, "-m", "gatemesh_health_manager"], env=environment)
    try:
        return timed_arrival(url, count)
    finally:
        manager.terminate()
        manager.wait(30)


def timed_arrival(url: str, count: int) -> float:
    """Wait until all verdicts are in the table; return verdicts per second between commits."""
    query = (
        "SELECT count(*), extract(epoch FROM max(received_at) - min(received_at)), "
        "count(*) FILTER (WHERE received_at > (SELECT min(received_at) FROM verdicts)) "
        "FROM verdicts"
    )
    end = time.monotonic() + 300
    with psycopg.connect(postgres.plain_url(url), autocommit=True) as connection:
        while time.monotonic() < end:
            row = connection.execute(query).fetchone()
            if row is not None and row[0] >= count:
                return float(row[2]) / float(row[1])
            time.sleep(0.2)
    raise SystemExit("the manager did not store every verdict within 300 s")


def measure(count: int) -> list[Figure]:
    """Measure every way, each in a database of its own."""
    with servers() as (amqp_url, server_url):
        with database(server_url) as url:
            bare = bare_insert(url, count)
        with database(server_url) as url:
            fresh = asyncio.run(store_alone(url, count))
        with database(server_url) as url:
            bare_insert(url, count * HISTORY_SHARE, hours_ago=2)
            grown = asyncio.run(store_alone(url, count))
        with database(server_url) as url:
            real = real_path(amqp_url, url, count)
    ways = {
        f"bare INSERT, {BATCH} rows a transaction": bare,
        "store: inbox, verdicts, windows, decisions": fresh,
        f"store on {HISTORY_SHARE}x the history": grown,
        "broker -> manager -> SQL, one process": real,
    }
    return [Figure(way, per_s, per_s / bare) for way, per_s in ways.items()]


def show(figures: Sequence[Figure]) -> None:
    """Print the table."""
    print(f"{'verdicts into SQL':45} {'per second':>10} {'of bare':>8}")
    for figure in figures:
        print(f"{figure.way:45} {figure.per_s:10.0f} {figure.share:8.2f}")


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, default=20_000, help="verdicts per measurement")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    figures = measure(arguments.verdicts)
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(figure) for figure in figures], indent=2))


if __name__ == "__main__":
    main()
