"""The embedded broker and database: put on disk, started together, and waited for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gatemesh_mesh import postgres, rabbit
from gatemesh_mesh.errors import ProgramFailedError
from gatemesh_mesh.postgres import PostgresServer
from gatemesh_mesh.prerequisites import ensure_rabbitmq
from gatemesh_mesh.processes import ProcessId
from gatemesh_mesh.progress import Progress
from gatemesh_mesh.rabbit import RabbitNode
from gatemesh_mesh.state import BROKER_SECRETS, StateFolder
from gatemesh_mesh.supervision import GONE, Supervision, tail
from gatemesh_mesh.waiting import wait_until

PROGRAMS = (rabbit.PROGRAM, postgres.PROGRAM)
"""What services need, and what is therefore stopped last."""


@dataclass(frozen=True)
class Nodes:
    """Which of the two run embedded; None means that an existing one is used."""

    rabbit: RabbitNode | None
    postgres: PostgresServer | None


def plan_nodes(
    folder: StateFolder,
    progress: Progress,
    ports: Mapping[str, int],
    *,
    broker: bool = True,
    database: bool = True,
) -> Nodes:
    """Choose places for the wanted nodes, each on the ports that bear its names."""
    secrets = folder.secrets()
    node = plan_broker(folder, progress, ports, secrets) if broker else None
    if not database:
        return Nodes(node, None)
    server = plan_database(folder, ports[postgres.PROGRAM], secrets["database"])
    if not server.folder.is_relative_to(folder.root):
        # The server runs as another user, who cannot pass through a closed parent folder.
        progress.note(f"{folder.root} is closed to other users; database: {server.folder}")
    return Nodes(node, server)


def node_port_names(*, broker: bool = True, database: bool = True) -> tuple[str, ...]:
    """Return the names of the ports that the wanted nodes listen on."""
    return (*(rabbit.PORT_NAMES if broker else ()), *((postgres.PROGRAM,) if database else ()))


def plan_broker(
    folder: StateFolder, progress: Progress, ports: Mapping[str, int], secrets: Mapping[str, str]
) -> RabbitNode:
    """Choose a place for the broker node; the broker's package is installed when it is absent."""
    return RabbitNode(
        sbin=ensure_rabbitmq(progress),
        folder=folder.rabbit,
        log_file=folder.logs / "rabbitmq.log",
        ports={name: ports[name] for name in rabbit.PORT_NAMES},
        user="gatemesh",
        password=secrets["broker"],
        cookie=secrets["mark"].upper(),
        service_passwords={service: secrets[name] for service, name in BROKER_SECRETS.items()},
    )


def plan_database(folder: StateFolder, port: int, password: str) -> PostgresServer:
    """Choose a place for the database server that the user it runs as can reach."""
    place, programs = postgres.place_server(folder.root, postgres.bundled_binaries())
    return PostgresServer(
        bin=programs,
        folder=place,
        log_file=folder.logs / "postgres.log",
        port=port,
        password=password,
        run_as=postgres.unprivileged_user(),
    )


def start_nodes(supervision: Supervision, nodes: Nodes, progress: Progress) -> None:
    """Start the wanted nodes side by side and wait until clients can log in.

    Raises:
        ProgramFailedError: one ended or was not ready in time; carries the end of its log.
    """
    if nodes.rabbit:
        rabbit.prepare(nodes.rabbit)
        supervision.add([rabbit.program(nodes.rabbit)])
        supervision.start_program(rabbit.PROGRAM)
    if nodes.postgres:
        start_database(supervision, nodes.postgres, progress)
    if nodes.rabbit:
        node = nodes.rabbit
        with progress.step("Starting the broker (private RabbitMQ)"):
            await_program(
                supervision,
                rabbit.PROGRAM,
                lambda: rabbit.is_ready(node),
                rabbit.READY_DEADLINE_S,
            )


def close(supervision: Supervision) -> list[ProcessId]:
    """End all that a folder's supervisord runs, the nodes last; return survivors."""
    return supervision.close(
        last=PROGRAMS, before_last=lambda: rabbit.hasten_stop(supervision.folder.rabbit)
    )


def start_database(supervision: Supervision, server: PostgresServer, progress: Progress) -> None:
    """Make the data folder if need be, start the server, and make our database in it.

    Raises:
        ProgramFailedError: it ended or was not ready in time; carries the end of its log.
    """
    with progress.step("Starting the database (private PostgreSQL)"):
        postgres.initialise(server)
        postgres.remove_stale_lock(server)
        supervision.add([postgres.program(server)])
        supervision.start_program(postgres.PROGRAM)
        await_program(
            supervision,
            postgres.PROGRAM,
            lambda: postgres.is_ready(server),
            postgres.READY_DEADLINE_S,
        )
        postgres.create_database(server.url("postgres"), postgres.DATABASE)


def await_program(
    supervision: Supervision, name: str, ready: Callable[[], bool], deadline_s: float
) -> None:
    """Wait until a program is ready.

    Raises:
        ProgramFailedError: it ended or was not ready in time; carries the end of its log.
    """
    log = supervision.log_of(name)

    def settled() -> bool:
        return ready() or supervision.state_of(name) in GONE

    if wait_until(settled, deadline_s, interval_s=0.2) and supervision.state_of(name) not in GONE:
        return
    raise failure(name, supervision.state_of(name), deadline_s, log)


def failure(name: str, state: str, deadline_s: float, log: Path) -> ProgramFailedError:
    """Say how a program failed to become ready, with the end of its log."""
    how = "ended" if state in GONE else f"was not ready within {deadline_s:.0f} s"
    return ProgramFailedError(
        f"{name} {how}; its log ends with:{tail(log)}",
        f"read {log}; on a busy machine try again, after a full disk free some space",
    )
