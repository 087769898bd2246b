"""The local stack: planned, started in order, watched, and ended without a trace."""

import os
import random
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gatemesh_mesh import nodes
from gatemesh_mesh.command_keys import prepare_keys
from gatemesh_mesh.errors import MeshError, ProgramFailedError
from gatemesh_mesh.nodes import Nodes, await_program
from gatemesh_mesh.options import StackOptions
from gatemesh_mesh.plan import (
    SERVICE_PORTS,
    Addresses,
    Engine,
    StackPlan,
    render_instances,
    service_environment,
    service_programs,
    simulated_engines,
)
from gatemesh_mesh.ports import choose_ports, require_free
from gatemesh_mesh.processes import ProcessId, describe
from gatemesh_mesh.progress import Progress
from gatemesh_mesh.reach import check_database, prepare_broker
from gatemesh_mesh.state import StateFolder, write_private
from gatemesh_mesh.supervision import Supervision, tail

SERVICE_DEADLINE_S = 120.0
ENGINE_DEADLINE_S = 600.0
"""A real engine loads its weights first, beside others that do the same."""

MIGRATION_TIMEOUT_S = 180
SPACE_NEEDED_BYTES = 300_000_000
REPOSITORY = Path(__file__).resolve().parents[3]

MakeEngines = Callable[[StateFolder, Sequence[int]], Sequence[Engine]]
"""Makes one engine per port."""


class Stack:
    """One local stack in one state folder, which the caller holds."""

    def __init__(self, folder: StateFolder, options: StackOptions, progress: Progress) -> None:
        self.folder = folder
        self.supervision = Supervision(folder)
        self._options = options
        self._progress = progress
        self._rng = random.Random()  # noqa: S311 (ports, not secrets)

    def start(self, make_engines: MakeEngines = simulated_engines) -> StackPlan:
        """Start everything in order and return what runs where.

        Raises:
            MeshError: something did not start; says what to do. Call `close` then, too.
        """
        require_space(self.folder.root)
        clear_leftovers(self.supervision, self._progress)
        self._check_existing()
        ports = self._choose_ports()
        chosen = self._plan_nodes(ports)
        plan = self._plan(chosen, ports, make_engines)
        daemon = self.supervision.start()
        facts = run_facts(plan, daemon)
        self.folder.write_run({**facts, "starting": True})
        nodes.start_nodes(self.supervision, chosen, self._progress)
        self._prepare_meeting_places(plan)
        self._start_engines(plan.engines)
        self._start_services(plan)
        self.folder.write_run({**facts, "starting": False})
        return plan

    def _check_existing(self) -> None:
        if self._options.database_url:
            check_database(self._options.database_url)
        if self._options.amqp_url:
            prepare_broker(self._options.amqp_url)

    def _choose_ports(self) -> dict[str, int]:
        options = self._options
        names = [
            *nodes.node_port_names(broker=not options.amqp_url, database=not options.database_url),
            *SERVICE_PORTS,
            *(f"engine-{number}" for number in range(options.engine_count)),
        ]
        kept = self.folder.read_run().get("ports", {})
        if options.agent_port is not None:
            kept["agent"] = require_free(options.agent_port, "--agent-port")
        return choose_ports(names, self._rng, kept)

    def _plan_nodes(self, ports: Mapping[str, int]) -> Nodes:
        return nodes.plan_nodes(
            self.folder,
            self._progress,
            ports,
            broker=not self._options.amqp_url,
            database=not self._options.database_url,
        )

    def _plan(
        self, chosen: Nodes, ports: Mapping[str, int], make_engines: MakeEngines
    ) -> StackPlan:
        engine_ports = [ports[f"engine-{n}"] for n in range(self._options.engine_count)]
        policy = self._options.policy_file or REPOSITORY / "policy.toml"
        return StackPlan(
            folder=self.folder,
            addresses=addresses(chosen, self._options),
            ports=ports,
            engines=make_engines(self.folder, engine_ports),
            supervisor_url=self.supervision.url,
            supervisor_user=self.supervision.user,
            supervisor_password=self.supervision.password,
            fingerprint_key=self.folder.secrets()["fingerprint"],
            console_token=self.folder.secrets()["console"],
            policy_file=policy if policy.exists() else None,
            notifier=self._options.notifier,
            guard=self._options.guard,
        )

    def _prepare_meeting_places(self, plan: StackPlan) -> None:
        with self._progress.step("Declaring queues, migrating the database"):
            prepare_broker(plan.addresses.amqp_url)
            migrate(
                service_environment(plan)["health_manager"],
                self.folder.logs / "migrate.log",
                planned=self._options.database_url is None,
            )

    def _start_engines(self, engines: Sequence[Engine]) -> None:
        with self._progress.step(f"Starting engines ({len(engines)})"):
            (self.folder.root / "drills").mkdir(exist_ok=True)
            self.supervision.add([engine.program for engine in engines])
            for engine in engines:
                self.supervision.start_program(engine.program.name)
            for engine in engines:
                url = f"{engine.base_url}/health"
                self._await(engine.program.name, url, ENGINE_DEADLINE_S)

    def _start_services(self, plan: StackPlan) -> None:
        write_private(plan.instances_file, render_instances(plan.engines))
        prepare_keys(self.folder)
        also = "" if plan.notifier is None else ", and the notifier"
        names = f"health manager, executor, agent, shadow and console{also}"
        with self._progress.step(f"Starting {names}"):
            self.supervision.add(service_programs(plan))
            for service in plan.services:
                self.supervision.start_program(service)
            for service in plan.services:
                self._await(service, plan.readiness_url(service))

    def _await(self, name: str, url: str, deadline_s: float = SERVICE_DEADLINE_S) -> None:
        await_program(self.supervision, name, lambda: answers_ok(url), deadline_s)

    def close(self) -> None:
        """End all of it.

        Raises:
            MeshError: a process survived.
        """
        if not self.supervision.survivors():
            return
        with self._progress.step("Stopping the stack"):
            report_survivors(nodes.close(self.supervision))


def clear_leftovers(supervision: Supervision, progress: Progress) -> None:
    """End what a run that was killed has left in this state folder.

    Raises:
        MeshError: a process survived.
    """
    if supervision.survivors():
        with progress.step("Stopping what an earlier run has left"):
            report_survivors(nodes.close(supervision))


def report_survivors(survivors: Sequence[ProcessId]) -> None:
    """Name the processes that could not be ended.

    Raises:
        MeshError: there are some.
    """
    if survivors:
        names = ", ".join(map(describe, survivors))
        raise MeshError(
            f"these processes of the stack could not be ended: {names}",
            "end them by hand as the user that started them, or as root",
        )


def addresses(chosen: Nodes, options: StackOptions) -> Addresses:
    """Return where broker and database are: ours, or the existing ones."""
    node, server = chosen.rabbit, chosen.postgres
    return Addresses(
        amqp_url=node.amqp_url if node else str(options.amqp_url),
        database_url=server.url() if server else str(options.database_url),
        management_url=node.management_url if node else None,
        service_amqp_urls=node.service_urls if node else {},
    )


def run_facts(plan: StackPlan, daemon: ProcessId) -> dict[str, object]:
    """Return what `status`, and the next start, want to know of this one."""
    return {
        "ports": dict(plan.ports),
        "agent_url": plan.agent_url,
        "console_url": plan.console_url,
        "amqp_url": plan.addresses.amqp_url,
        "management_url": plan.addresses.management_url,
        "database_url": plan.addresses.database_url,
        "engines": {engine.instance_id: engine.base_url for engine in plan.engines},
        "admin_urls": {service: plan.admin_url(service) for service in plan.services},
        "supervisord": [daemon.pid, daemon.start_ticks],
    }


def migrate(environment: Mapping[str, str], log_file: Path, *, planned: bool) -> None:
    """Bring the database's tables up to date.

    With `planned` this start counts against no restart budget: the database and its engines are
    ours alone.

    Raises:
        ProgramFailedError: the migration failed; carries the end of its log.
    """
    flags = ["--planned-start"] if planned else []
    with log_file.open("wb") as output:
        result = subprocess.run(
            [sys.executable, "-m", "gatemesh_health_manager", "migrate", *flags],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=MIGRATION_TIMEOUT_S,
            check=False,
        )
    if result.returncode:
        raise ProgramFailedError(
            f"the database could not be migrated:{tail(log_file)}",
            f"read {log_file}; a database of a newer release needs that release",
        )


def answers_ok(url: str) -> bool:
    """Tell whether a page answers 200."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310 (our own address)
            return bool(response.status == 200)  # noqa: PLR2004
    except (urllib.error.URLError, OSError, ValueError):
        return False


def require_space(folder: Path, needed_bytes: int = SPACE_NEEDED_BYTES) -> None:
    """Check that the disk has room for logs and data.

    Raises:
        MeshError: it has not.
    """
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise MeshError(
            f"only {free // 1_000_000} MB are free where {folder} lies; "
            f"the stack needs {needed_bytes // 1_000_000} MB",
            "free some space, or set GATEMESH_STATE to a folder on another disk",
        )
