"""Broker and database from containers, by testcontainers, where a Docker engine answers."""

import json
import os
import secrets
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from docker.errors import DockerException
from testcontainers.core.config import ConnectionMode, testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from tests.certificates import Certificates

from gatemesh_common.broker_definitions import Site, definitions
from gatemesh_mesh import postgres, rabbit
from gatemesh_mesh.ports import LOOPBACK
from gatemesh_mesh.waiting import wait_until

DATABASE_IMAGE = "postgres:17"
AMQP, AMQPS, MANAGEMENT, METRICS, DATABASE = 5672, 5671, 15672, 15692, 5432
BROKER_FOLDER = "/etc/rabbitmq"
USER = "gatemesh"
ANSWER_DEADLINE_S = 5
READY_DEADLINE_S = 180.0
"""A start takes 4 s on a quiet machine; a busy one is 15 times slower."""
SHOWN_LOG_BYTES = 3_000

CONFIGURATION = f"""\
listeners.ssl.1 = {AMQPS}
ssl_options.cacertfile = {BROKER_FOLDER}/ca.pem
ssl_options.certfile = {BROKER_FOLDER}/server.pem
ssl_options.keyfile = {BROKER_FOLDER}/server.key
ssl_options.verify = verify_none
ssl_options.versions.1 = tlsv1.2
loopback_users = none
log.console = true
disk_free_limit.absolute = 50MB
vm_memory_high_watermark.absolute = 512MB
raft.wal_max_size_bytes = 67108864
consumer_timeout = 14400000
load_definitions = {BROKER_FOLDER}/definitions.json
"""
"""As the private node's, see `gatemesh_mesh.rabbit`."""


@dataclass(frozen=True)
class ContainedBroker:
    """Where a broker in a container is reached."""

    amqp_url: str
    management_url: str
    amqps_port: int
    metrics_port: int


def broker_image(version: str) -> str:
    """Return the broker's image: any version that upstream has a tag for, such as 3, 4 or 4.3."""
    return f"rabbitmq:{version}-management"


def missing_engine() -> str | None:
    """Return why no Docker engine can be used; None where one answers."""
    try:
        client = DockerClient(timeout=ANSWER_DEADLINE_S).client
        client.ping()
    except DockerException as error:
        return str(error)
    client.close()
    return None


def settle() -> None:
    """Decide for testcontainers what the environment does not.

    Its reaper is one more image and is handed the engine's socket. It also takes many a machine for
    a container, and then names addresses of the engine's own network.
    """
    if "TESTCONTAINERS_RYUK_DISABLED" not in os.environ:
        testcontainers_config.ryuk_disabled = True
    if testcontainers_config.connection_mode_override is None:
        testcontainers_config.connection_mode_override = ConnectionMode.docker_host


@contextmanager
def running_broker(version: str, certificates: Certificates) -> Iterator[ContainedBroker]:
    """Run a broker with an administrator and our topology while the block lasts."""
    password = secrets.token_hex(16)
    container = published(broker_image(version), AMQP, AMQPS, MANAGEMENT, METRICS)
    for name, content in broker_files(password, certificates).items():
        container.with_copy_into_container(content, f"{BROKER_FOLDER}/{name}")
    with container:
        amqp, amqps, management, metrics = (
            container.get_exposed_port(port) for port in (AMQP, AMQPS, MANAGEMENT, METRICS)
        )
        found = ContainedBroker(
            f"amqp://{USER}:{password}@{LOOPBACK}:{amqp}/",
            f"http://{LOOPBACK}:{management}",
            amqps,
            metrics,
        )
        await_ready(container, lambda: is_ready(found))
        yield found


@contextmanager
def running_database() -> Iterator[str]:
    """Run a database while the block lasts, and give the address of its superuser."""
    password = secrets.token_hex(16)
    container = (
        published(DATABASE_IMAGE, DATABASE)
        .with_envs(POSTGRES_USER=USER, POSTGRES_PASSWORD=password, POSTGRES_DB=postgres.DATABASE)
        .with_command(["postgres", "-c", "max_connections=200", "-c", "timezone=UTC"])
    )
    with container:
        place = f"{LOOPBACK}:{container.get_exposed_port(DATABASE)}"
        url = f"postgresql+psycopg://{USER}:{password}@{place}/{postgres.DATABASE}"
        await_ready(container, lambda: postgres.answers(url))
        yield url


def published(image: str, *ports: int) -> DockerContainer:
    """Return a container, not started, whose ports are free ones of this machine alone."""
    container = DockerContainer(image).with_kwargs(mem_limit="1g")
    # The engine takes an address here, which the library's types do not know.
    places = {f"{port}/tcp": (LOOPBACK,) for port in ports}
    container.ports.update(cast("dict[str, int | None]", places))
    return container


def broker_files(password: str, certificates: Certificates) -> Mapping[str, bytes]:
    """Return by name what the broker reads at its start."""
    return {
        "rabbitmq.conf": CONFIGURATION.encode(),
        "enabled_plugins": rabbit.PLUGINS.encode(),
        "definitions.json": json.dumps(definitions({}, Site(), (USER, password))).encode(),
        "ca.pem": certificates.ca_file.read_bytes(),
        "server.pem": certificates.certificate_file.read_bytes(),
        "server.key": certificates.key_file.read_bytes(),
    }


def is_ready(broker: ContainedBroker) -> bool:
    """Tell whether clients and callers of the HTTP API are answered."""
    try:
        with urllib.request.urlopen(broker.management_url, timeout=ANSWER_DEADLINE_S):  # noqa: S310
            return rabbit.accepts_amqp(broker.amqp_url)
    except (OSError, urllib.error.URLError):
        return False


def await_ready(container: DockerContainer, ready: Callable[[], bool]) -> None:
    """Wait until a started container can be used; fail with the end of its log."""

    def settled() -> bool:
        container.reload()
        return container.status == "exited" or ready()

    if not wait_until(settled, READY_DEADLINE_S, interval_s=0.2) or container.status == "exited":
        said = b"".join(container.get_logs())[-SHOWN_LOG_BYTES:].decode(errors="replace")
        raise AssertionError(f"{container.image} was not ready; its log ends with:\n{said}")
