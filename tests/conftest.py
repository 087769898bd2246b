"""A private broker and database for the whole test session, and a clean corner of them per test."""

import base64
import json
import os
import random
import shutil
import tempfile
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import HealthCheck, settings
from tests.certificates import make_certificates

from gatemesh_mesh import nodes, postgres
from gatemesh_mesh.ports import choose_ports
from gatemesh_mesh.progress import SilentProgress
from gatemesh_mesh.rabbit import BrokerTls
from gatemesh_mesh.state import StateFolder
from gatemesh_mesh.suite import (
    CONTAINERS_VARIABLE,
    FAILED_CHECKS_VARIABLE,
    REAL_ENGINE_VARIABLE,
    broker_version,
)
from gatemesh_mesh.supervision import Supervision

# A busy machine is slow, and that is no fault of what is tested.
settings.register_profile(
    "busy", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("busy")

BROKER_VARIABLE = "GATEMESH_TEST_AMQP_URL"
MANAGEMENT_VARIABLE = "GATEMESH_TEST_MANAGEMENT_URL"
DATABASE_VARIABLE = "GATEMESH_TEST_DATABASE_URL"
NO_ENGINE = pytest.StashKey[str | None]()
"""Why the containers that were asked for cannot be had."""


EARLY_FOLDERS = (
    "tests/unit",
    "tests/contract",
    *(
        f"tests/integration/{name}"
        for name in ("agent", "common", "console", "ctl", "engine_sim", "examples")
    ),
)
"""What needs nothing that takes long to install, and about as long as that takes."""
ENGINE_FOLDERS = ("tests/integration/real_engine", "tests/integration/shadow")
"""What asks one real engine or one model at a time, which computes on one core."""
FLEET_FILE = "tests/acceptance/test_real_engine.py"
"""What runs a fleet of real engines, which computes on all cores."""

SLOW_FILES = (
    "tests/integration/ctl/test_ctl.py",
    "tests/integration/agent/test_program.py",
    "tests/acceptance/test_clean.py",
    "tests/faults/test_scenarios.py",
    "tests/acceptance/test_kills.py",
    "tests/acceptance/test_conditions.py",
    "tests/acceptance/test_shadow_and_suites.py",
    "tests/integration/executor/test_executor.py",
    "tests/integration/mesh/test_up.py",
    "tests/integration/real_engine/test_answers.py",
    "tests/integration/real_engine/test_pairs.py",
)
"""What takes minutes begins first, so that no worker waits for it alone at the end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `./mesh test` run the tests in parts, the first while the engine is installed."""
    choices = ("early", "stacks", "engines", "fleet")
    parser.addoption("--part", choices=choices, help="a part of all tests")
    parser.addoption(
        "--containers",
        metavar="VERSION",
        type=broker_version,
        default=os.environ.get(CONTAINERS_VARIABLE) or None,
        help="broker of this version, such as 3, 4 or 4.3, and database in containers",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Look once whether the containers that were asked for can be had."""
    config.stash[NO_ENGINE] = None
    if config.getoption("containers"):
        # Not loaded by others: it takes most of a second.
        from tests import containers  # noqa: PLC0415

        containers.settle()
        config.stash[NO_ENGINE] = containers.missing_engine()


def pytest_report_header(config: pytest.Config) -> str:
    """Say which broker and database the tests use."""
    source = bench_source(config.getoption("containers"), config.stash[NO_ENGINE], os.environ)
    return f"broker and database: {source}"


def bench_source(
    version: str | None, missing_engine: str | None, environment: Mapping[str, str]
) -> str:
    """Return in words where broker and database come from."""
    if missing_engine:
        return f"native, for no Docker engine answers: {missing_engine}"
    if version:
        return f"containers, RabbitMQ {version} and PostgreSQL 17"
    named = [name for name in (BROKER_VARIABLE, DATABASE_VARIABLE) if environment.get(name)]
    return f"native, save what {' and '.join(named)} names" if named else "native"


def part_of(file: str) -> str:
    """Return the part that a test file of the repository belongs to."""
    if file.startswith(ENGINE_FOLDERS):
        return "engines"
    if file == FLEET_FILE:
        return "fleet"
    return "early" if file.startswith(EARLY_FOLDERS) else "stacks"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of other parts unread: all of them take half a minute to read."""
    part = config.getoption("part")
    if part is None or collection_path.suffix != ".py":
        return None
    file = collection_path.relative_to(config.rootpath).as_posix()
    return True if part_of(file) != part else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the slow files, and skip the real engine's tests where there is none."""
    if config.getoption("part") is not None:
        slow = [config.rootpath / file for file in SLOW_FILES]
        items.sort(key=lambda item: slow.index(item.path) if item.path in slow else len(slow))
    reason = os.environ.get(REAL_ENGINE_VARIABLE)
    for item in items if reason else ():
        if item.get_closest_marker("real_engine"):
            item.add_marker(pytest.mark.skip(reason=f"no real engine: {reason}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Repeat the checks that failed before the tests, where people look: at the end."""
    if failed := os.environ.get(FAILED_CHECKS_VARIABLE):
        terminalreporter.section("checks that failed before the tests, see above", red=True)
        terminalreporter.line(failed, red=True)


@dataclass(frozen=True)
class Bench:
    """The broker and database that this test session uses."""

    amqp_url: str
    management_url: str
    database_url: str
    tls: BrokerTls | None = None
    """How the broker is reached encrypted; None where it is not ours."""
    metrics_port: int | None = None
    """Where the broker shows its metrics; None where it can be asked."""


@pytest.fixture(scope="session")
def bench(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Start what the environment does not name, once, and end it with the session."""
    version = pytestconfig.getoption("containers")
    broker, database = os.environ.get(BROKER_VARIABLE), os.environ.get(DATABASE_VARIABLE)
    with ExitStack() as opened:
        if version and not pytestconfig.stash[NO_ENGINE]:
            folder = tmp_path_factory.mktemp("tls")
            yield opened.enter_context(contained_bench(version, folder))
        elif broker and database:
            yield Bench(broker, management_of(broker), database)
        else:
            yield opened.enter_context(native_bench(broker, database))


@contextmanager
def contained_bench(version: str, folder: Path) -> Iterator[Bench]:
    """Run both in containers while the block lasts."""
    from tests import containers  # noqa: PLC0415 (see above)

    made = make_certificates(folder)
    with (
        containers.running_database() as database,
        containers.running_broker(version, made) as broker,
    ):
        tls = BrokerTls(broker.amqps_port, made.ca_file, made.certificate_file, made.key_file)
        yield Bench(broker.amqp_url, broker.management_url, database, tls, broker.metrics_port)


@contextmanager
def native_bench(broker: str | None, database: str | None) -> Iterator[Bench]:
    """Run as private nodes what has no address yet while the block lasts."""
    folder = StateFolder(Path(tempfile.mkdtemp(prefix="gatemesh-test-")))
    folder.create()
    supervision = Supervision(folder)
    wanted = {"broker": not broker, "database": not database}
    ports = choose_ports([*nodes.node_port_names(**wanted), "amqps"], random.Random())
    plan = nodes.plan_nodes(folder, SilentProgress(), ports, **wanted)
    if plan.rabbit:
        tls = encrypting(folder.root / "tls", ports["amqps"])
        plan = replace(plan, rabbit=replace(plan.rabbit, tls=tls))
    try:
        supervision.start()
        nodes.start_nodes(supervision, plan, SilentProgress())
        node, server = plan.rabbit, plan.postgres
        yield Bench(
            node.amqp_url if node else str(broker),
            node.management_url if node else management_of(str(broker)),
            server.url() if server else str(database),
            node.tls if node else None,
        )
    finally:
        nodes.close(supervision)
        # The database lies elsewhere when the folder for temporary files is closed to others.
        for left in (folder.root, *([plan.postgres.folder] if plan.postgres else [])):
            shutil.rmtree(left, ignore_errors=True)


def encrypting(folder: Path, port: int) -> BrokerTls:
    """Make an authority and a certificate for this machine's broker."""
    made = make_certificates(folder)
    return BrokerTls(port, made.ca_file, made.certificate_file, made.key_file)


def management_of(amqp_url: str) -> str:
    """Return the address of an existing broker's HTTP API."""
    host = urlsplit(amqp_url).hostname
    return os.environ.get(MANAGEMENT_VARIABLE, f"http://{host}:15672")


@pytest.fixture(scope="session")
def broker_url(bench: Bench) -> str:
    """Return the AMQP address of a broker whose user may do everything."""
    return bench.amqp_url


@pytest.fixture(scope="session")
def database_url(bench: Bench) -> str:
    """Return the address of a database whose user may create databases."""
    return bench.database_url


@pytest.fixture
def fresh_database(database_url: str) -> Iterator[str]:
    """Make an empty database for one test and return its address; it is dropped afterwards."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    postgres.create_database(database_url, name)
    yield urlsplit(database_url)._replace(path=f"/{name}").geturl()
    postgres.drop_database(database_url, name)


@pytest.fixture
def vhost_url(bench: Bench) -> Iterator[str]:
    """Make an empty virtual host for one test and return its address; it is deleted afterwards."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    user = quote(str(urlsplit(bench.amqp_url).username), safe="")
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    call_management(bench, "PUT", f"vhosts/{name}", {})
    call_management(bench, "PUT", f"permissions/{name}/{user}", everything)
    yield urlsplit(bench.amqp_url)._replace(path=f"/{name}").geturl()
    call_management(bench, "DELETE", f"vhosts/{name}", None)


def call_management(
    bench: Bench, method: str, path: str, body: Mapping[str, object] | None
) -> None:
    """Call the broker's HTTP API as the broker's own user."""
    address = urlsplit(bench.amqp_url)
    login = base64.b64encode(f"{address.username}:{address.password}".encode()).decode()
    request = urllib.request.Request(  # noqa: S310 (the broker's own address)
        f"{bench.management_url}/api/{path}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Authorization": f"Basic {login}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60):  # noqa: S310
        pass
