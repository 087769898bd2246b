"""What a scenario is played on: a stack whose broker and database are reached over links."""

import os
import random
import shutil
import signal
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.acceptance.fleet import Fleet, quick_engines, until
from tests.faults.link import Link

from gatemesh_health_manager.policy import parse_policy
from gatemesh_mesh import nodes, postgres, rabbit
from gatemesh_mesh.drills import Drill, end_drill, start_drill
from gatemesh_mesh.errors import ProgramFailedError
from gatemesh_mesh.foreground import running_stack
from gatemesh_mesh.nodes import Nodes, await_program, node_port_names
from gatemesh_mesh.options import StackOptions
from gatemesh_mesh.plan import StackPlan
from gatemesh_mesh.ports import LOOPBACK, choose_ports
from gatemesh_mesh.postgres import PostgresServer
from gatemesh_mesh.progress import SilentProgress
from gatemesh_mesh.rabbit import RabbitNode
from gatemesh_mesh.stack import Stack
from gatemesh_mesh.state import StateFolder
from gatemesh_mesh.supervision import GONE, Supervision
from gatemesh_mesh.waiting import wait_until

WITH_BRAKE = """
# Many faults in one stack: the restart budget and flap damping have scenarios of their own.
[defaults.flap]
enabled = false
[defaults.restart]
restarts = 1000
back_off_s = [0]
[defaults.condition_b]
reconfirm_window_s = 0.001
"""
POLICY = WITH_BRAKE + "[defaults.fleet_brake]\nenabled = false\n"
"""Where all were accused a minute ago, one more accusation would wait for a person to look."""
ENGINES = 3
KILL_DEADLINE_S = 15.0
START_DEADLINE_S = 60.0


@dataclass(frozen=True)
class Servers:
    """The broker and the database, run beside the stack so that they can be killed."""

    supervision: Supervision
    broker: RabbitNode
    database: PostgresServer

    def kill_broker(self) -> None:
        """End the broker as a power cut would."""
        self._kill(rabbit.PROGRAM)

    def start_broker(self) -> None:
        """Start it again and wait until clients can connect."""
        self.supervision.start_program(rabbit.PROGRAM)
        ready = lambda: rabbit.accepts_amqp(self.broker.amqp_url)  # noqa: E731
        await_program(self.supervision, rabbit.PROGRAM, ready, rabbit.READY_DEADLINE_S)

    def kill_database(self) -> None:
        """End the database server as a power cut would."""
        self._kill(postgres.PROGRAM)

    def start_database(self) -> None:
        """Start it again and wait until clients can log in.

        It refuses to start while the sessions of the one that was killed are still ending.
        """
        assert wait_until(self._database_starts, START_DEADLINE_S, interval_s=1.0)

    def _database_starts(self) -> bool:
        postgres.remove_stale_lock(self.database)
        self.supervision.start_program(postgres.PROGRAM)
        ready = lambda: postgres.is_ready(self.database)  # noqa: E731
        try:
            await_program(self.supervision, postgres.PROGRAM, ready, postgres.READY_DEADLINE_S)
        except ProgramFailedError:
            return False
        return True

    def _kill(self, program: str) -> None:
        pid = next(one.pid for one in self.supervision.statuses() if one.name == program)
        os.killpg(pid, signal.SIGKILL)
        # supervisord would take a start for done while it has not noticed the death.
        gone = wait_until(lambda: self.supervision.state_of(program) in GONE, KILL_DEADLINE_S)
        assert gone, f"{program} lives on"


@dataclass(frozen=True)
class Site:
    """The running stack, its links, and its servers."""

    fleet: Fleet
    """Reads SQL and publishes without the links."""
    plan: StackPlan
    """As the services see it: over the links."""
    servers: Servers
    broker_link: Link
    database_link: Link
    policy_file: Path

    async def follow(self, rules: str) -> None:
        """Put rules in force, and wait until they are."""
        self.policy_file.write_text(rules)
        line = f'gatemesh_policy_info{{version="{parse_policy(rules).version}"}} 1.0'
        await until(
            lambda: line in self.metrics("health_manager"), "the manager takes the rules over"
        )

    def metrics(self, service: str) -> list[str]:
        """Return the lines that a service shows to a monitoring system; none while it is away."""
        url = f"http://{LOOPBACK}:{self.plan.ports[f'{service}_admin']}/metrics"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return str(answer.read().decode()).splitlines()
        except OSError:
            return []

    def spoil(self, instance: str, fault: str, after_tokens: int = 0) -> None:
        """Make the present life of an engine emit a fault, from a token of each answer on."""
        drill = Drill(fault, pgid=self.fleet.pid_of(instance), after_tokens=after_tokens)
        start_drill(self._drill_file(instance), drill)

    def heal(self) -> None:
        """Let everything through, and end every drill."""
        self.broker_link.open()
        self.database_link.open()
        for engine in self.plan.engines:
            end_drill(self._drill_file(engine.instance_id))

    def _drill_file(self, instance: str) -> Path:
        return self.plan.folder.root / "drills" / f"{instance}.json"


@contextmanager
def running_site() -> Iterator[Site]:
    """Run servers, links and stack; all of it is ended whatever happens."""
    folder = StateFolder(Path(tempfile.mkdtemp(prefix="gatemesh-faults-")))
    try:
        with (
            running_servers() as servers,
            linked(servers) as links,
            running_over(folder, servers, *links) as site,
        ):
            yield site
    finally:
        shutil.rmtree(folder.root, ignore_errors=True)


@contextmanager
def running_over(
    folder: StateFolder, servers: Servers, broker_link: Link, database_link: Link
) -> Iterator[Site]:
    """Run the stack over the links."""
    policy_file = folder.root / "policy.toml"
    policy_file.write_text(POLICY)
    options = StackOptions(
        engine_count=ENGINES,
        amqp_url=broker_link.url,
        database_url=database_link.url,
        policy_file=policy_file,
    )
    with (
        running_stack(folder, options, SilentProgress(), quick_engines) as (stack, plan),
        closing(direct_fleet(stack, plan, servers)) as fleet,
    ):
        yield Site(fleet, plan, servers, broker_link, database_link, policy_file)


def direct_fleet(stack: Stack, plan: StackPlan, servers: Servers) -> Fleet:
    """Return the fleet as seen by someone who does not depend on the links."""
    direct = replace(
        plan.addresses,
        amqp_url=servers.broker.amqp_url,
        database_url=servers.database.url(),
        management_url=servers.broker.management_url,
    )
    return Fleet(stack, replace(plan, addresses=direct))


@contextmanager
def linked(servers: Servers) -> Iterator[tuple[Link, Link]]:
    """Lay a link to the broker and one to the database."""
    with Link(servers.broker.amqp_url) as broker, Link(servers.database.url()) as database:
        yield broker, database


@contextmanager
def running_servers() -> Iterator[Servers]:
    """Run a broker and a database that belong to no other test."""
    folder = StateFolder(Path(tempfile.mkdtemp(prefix="gatemesh-servers-")))
    folder.create()
    supervision = Supervision(folder)
    ports = choose_ports(node_port_names(), random.Random())
    plan = nodes.plan_nodes(folder, SilentProgress(), ports)
    try:
        supervision.start()
        nodes.start_nodes(supervision, plan, SilentProgress())
        yield servers_of(supervision, plan)
    finally:
        nodes.close(supervision)
        # The database lies elsewhere when the folder for temporary files is closed to others.
        for left in (folder.root, *([plan.postgres.folder] if plan.postgres else [])):
            shutil.rmtree(left, ignore_errors=True)


def servers_of(supervision: Supervision, plan: Nodes) -> Servers:
    """Return the servers of a plan that has both."""
    assert plan.rabbit is not None
    assert plan.postgres is not None
    return Servers(supervision, plan.rabbit, plan.postgres)
