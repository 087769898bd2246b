"""Verdicts per second into SQL: the manager's real path and its store, beside bare inserts.

And how long a command takes from the verdict that calls for it, at half of what the real path took.
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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import command_latency
from benchmarks.command_latency import Latency

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
from gatemesh_health_manager.lanes import LARGEST_BATCH
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
ENGINES = tuple((f"engine-{number}", "default") for number in range(INSTANCES))
"""The instances that verdicts are about, each with its pool."""
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
    cpu_us: float
    """CPU of the process that brings them there, per verdict; its start is left out."""


@dataclass(frozen=True)
class Speed:
    """How fast verdicts came into the table, and what each cost the process that brought them."""

    per_s: float
    cpu_us: float


class Stopwatch:
    """Time and this process's CPU since it was made."""

    def __init__(self) -> None:
        self._began_s, self._cpu_s = time.perf_counter(), time.process_time()

    def speed(self, count: int) -> Speed:
        """Return how fast so many were."""
        cpu_s = time.process_time() - self._cpu_s
        return Speed(count / (time.perf_counter() - self._began_s), 1e6 * cpu_s / count)


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
        nodes.close(supervision)
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


def bare_insert(url: str, count: int, hours_ago: int = 0) -> Speed:
    """Insert rows in batches, one transaction each."""
    ready = rows(count, hours_ago)
    names = sql.SQL(", ").join(map(sql.Identifier, VERDICT_NAMES))
    marks = sql.SQL(", ").join([sql.Placeholder()] * len(VERDICT_NAMES))
    statement = sql.SQL("INSERT INTO verdicts ({}) VALUES ({})").format(names, marks)
    with psycopg.connect(postgres.plain_url(url), autocommit=True) as connection:
        began = Stopwatch()
        for start in range(0, count, BATCH):
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(statement, ready[start : start + BATCH])
        return began.speed(count)


async def bring_up(store: Store, url: str, instances: Iterable[tuple[str, str]] = ENGINES) -> None:
    """Have instances in rotation, without anybody to probe them."""
    await store.register_policy()
    for name, pool in instances:
        seen = InstanceObserved(
            timestamp=utc_now(),
            instance_id=name,
            pool=pool,
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


async def store_alone(url: str, count: int) -> Speed:
    """Hand batches to the store."""
    engine = open_database(url)
    store = Store(engine, Policy(), utc_now)
    await bring_up(store, url)
    ready = verdicts(count)
    began = Stopwatch()
    for start in range(0, count, BATCH):
        await store.apply_verdicts(VERDICTS.name, ready[start : start + BATCH])
    speed = began.speed(count)
    await engine.dispose()
    return speed


async def prepare(url: str, instances: Iterable[tuple[str, str]]) -> None:
    """Have instances in rotation before a manager is started."""
    engine = open_database(url)
    await bring_up(Store(engine, Policy(), utc_now), url, instances)
    await engine.dispose()


async def fill_queue(amqp_url: str, count: int) -> None:
    """Leave verdicts in the manager's queue."""
    async with Publisher(amqp_url, "benchmark", deadline_s=60) as publisher:
        await declare_topology(await publisher.channel())
        ready = verdicts(count)
        for start in range(0, count, BATCH):
            batch = ready[start : start + BATCH]
            await asyncio.gather(*(publisher.publish(verdict) for verdict in batch))


def real_path(amqp_url: str, url: str, count: int) -> Speed:
    """Fill the queue, start a manager, and time it from its first to its last commit."""
    asyncio.run(prepare(url, ENGINES))
    asyncio.run(fill_queue(amqp_url, count))
    with running_manager(amqp_url, url) as manager:
        return timed_arrival(url, count, manager.pid)


def latency(amqp_url: str, url: str, per_s: float) -> Latency:
    """Have a manager answer proofs with commands while other verdicts come at a rate."""
    asyncio.run(prepare(url, [*ENGINES, *command_latency.targets()]))
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder, "policy.toml")
        policy.write_text(command_latency.POLICY)
        with running_manager(amqp_url, url, GATEMESH_HEALTH_MANAGER_POLICY_FILE=str(policy)):
            asyncio.run(until_read(amqp_url, url))
            others = verdicts(command_latency.needed(per_s))
            return asyncio.run(command_latency.race(amqp_url, url, others, per_s))


async def until_read(amqp_url: str, url: str) -> None:
    """Return once the manager stores what is published."""
    async with Publisher(amqp_url, "benchmark", deadline_s=60) as publisher:
        await declare_topology(await publisher.channel())
        await publisher.publish(verdicts(1)[0])
    await asyncio.to_thread(timed_arrival, url, 1)


@contextlib.contextmanager
def running_manager(amqp_url: str, url: str, **more: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Give a manager in a process of its own."""
    environment = {
        **os.environ,
        "GATEMESH_AMQP_URL": amqp_url,
        "GATEMESH_DATABASE_URL": url,
        "GATEMESH_HEALTH_MANAGER_ADMIN_PORT": "0",
        "GATEMESH_LOG_LEVEL": "ERROR",
        **more,
    }
    manager = subprocess.Popen([sys.executable, "-m", "gatemesh_health_manager"], env=environment)
    try:
        yield manager
    finally:
        manager.terminate()
        manager.wait(30)


def timed_arrival(url: str, count: int, process: int | None = None) -> Speed:
    """Wait until all verdicts are in the table; the speed is that between commits."""
    query = (
        "SELECT count(*), extract(epoch FROM max(received_at) - min(received_at)), "
        "count(*) FILTER (WHERE received_at > (SELECT min(received_at) FROM verdicts)) "
        "FROM verdicts"
    )
    end, cpu_s = time.monotonic() + 300, 0.0
    with psycopg.connect(postgres.plain_url(url), autocommit=True) as connection:
        while time.monotonic() < end:
            row = connection.execute(query).fetchone()
            if row is not None and row[0] == 0:
                cpu_s = cpu_of(process)
            elif row is not None and row[0] >= count:
                per_s = float(row[2]) / float(row[1]) if row[1] else 0.0
                return Speed(per_s, 1e6 * (cpu_of(process) - cpu_s) / count)
            time.sleep(0.2 if cpu_s else 0.02)
    raise SystemExit("the manager did not store every verdict within 300 s")


def cpu_of(process: int | None) -> float:
    """Return the CPU seconds that a process has used, as far as the system tells."""
    stat = Path(f"/proc/{process}/stat")
    if process is None or not stat.exists():
        return 0.0
    # Behind the name, which may hold anything: from state on, user and system time are 12th, 13th.
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(count: int) -> tuple[list[Figure], Latency]:
    """Measure every way, each in a database of its own, and commands at half of the real one."""
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
        with database(server_url) as url:
            commands = latency(amqp_url, url, real.per_s / 2)
    ways = {
        f"bare INSERT, {BATCH} rows a transaction": bare,
        "store: inbox, verdicts, windows, decisions": fresh,
        f"store on {HISTORY_SHARE}x the history": grown,
        "broker -> manager -> SQL, one process": real,
    }
    figures = [
        Figure(way, speed.per_s, speed.per_s / bare.per_s, speed.cpu_us)
        for way, speed in ways.items()
    ]
    return figures, commands


def show(figures: Sequence[Figure], commands: Latency) -> None:
    """Print the tables."""
    print(f"{'verdicts into SQL':45} {'per second':>10} {'of bare':>8} {'CPU us':>7}")
    for one in figures:
        print(f"{one.way:45} {one.per_s:10.0f} {one.share:8.2f} {one.cpu_us:7.0f}")
    print(
        f"verdict -> command beside {commands.sent_per_s:.0f} verdicts/s (half of the real path: "
        f"{commands.load_per_s:.0f}), {commands.commands} commands: p50 {commands.p50_ms:.1f} ms, "
        f"p99 {commands.p99_ms:.1f} ms, worst {commands.worst_ms:.1f} ms; a bare service beside it "
        f"(read, commit a row, answer): p50 {commands.bare_p50_ms:.1f} ms, "
        f"p99 {commands.bare_p99_ms:.1f} ms"
    )


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, default=20_000, help="verdicts per measurement")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    figures, commands = measure(arguments.verdicts)
    show(figures, commands)
    if arguments.json:
        found = {"ways": [asdict(figure) for figure in figures], "commands": asdict(commands)}
        arguments.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
