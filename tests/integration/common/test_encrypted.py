"""Broker and database over TLS: proven by a file of authorities, refused without it."""

import pwd
import random
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aio_pika import Message
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError
from tests.certificates import Certificates, make_certificates
from tests.conftest import Bench

from gatemesh_agent.broadcasts import follow
from gatemesh_common.broker import VERDICTS
from gatemesh_common.consuming import consumer_broker
from gatemesh_common.database import open_database, transaction, with_driver
from gatemesh_common.errors import DatabaseUnavailableError, GatemeshError
from gatemesh_common.messages import ALERTS
from gatemesh_common.publisher import Publisher
from gatemesh_common.secured import secured_broker, secured_database
from gatemesh_common.settling import settle_topology
from gatemesh_ctl.errors import UnreachableError
from gatemesh_ctl.queues import queue_states
from gatemesh_health_manager.deliveries import consume
from gatemesh_mesh import postgres
from gatemesh_mesh.ports import choose_ports
from gatemesh_mesh.postgres import PostgresServer
from gatemesh_mesh.waiting import wait_until

Door = Callable[[str], Awaitable[object]]
ASKED = text("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
DEADLINE_S = 60.0
DEBIAN_SERVERS = Path("/usr/lib/postgresql")


@pytest.fixture
def amqps_url(bench: Bench, vhost_url: str) -> str:
    """Return the encrypted address of an empty virtual host, without a file of authorities."""
    if bench.tls is None:
        pytest.skip("the broker under test is not ours: nothing is known of its certificate")
    parts = urlsplit(vhost_url)
    place = f"{parts.username}:{parts.password}@127.0.0.1:{bench.tls.port}"
    return parts._replace(scheme="amqps", netloc=place).geturl()


@pytest.fixture
def trusted_url(bench: Bench, amqps_url: str) -> str:
    """Return the same address with the authority that certifies the broker."""
    assert bench.tls
    return secured_broker(amqps_url, bench.tls.ca_file)


async def publish(url: str) -> None:
    """Send as every service does."""
    async with Publisher(url, "test", deadline_s=10) as publisher:
        await settle_topology(publisher)
        await publisher.publish_raw(Message(b"{}"), ALERTS, "verdict.v1.L1", mandatory=True)


async def subscribe(url: str) -> None:
    """Receive as executor and shadow do."""
    async with Publisher(url, "test") as publisher:
        broker = consumer_broker(url, "test", publisher)
        try:
            await broker.start()
        finally:
            await broker.stop()


async def hear(url: str) -> None:
    """Follow a broadcast as the agent does; nothing is sent, so it ends by itself."""

    async def drop(_: bytes) -> None:
        """Take no notice."""

    with suppress(TimeoutError):
        await follow(url, "routing.v1.#", 0.2, drop)


async def take(url: str) -> None:
    """Consume verdicts as the manager does."""
    await (await consume(url, VERDICTS.name, 10, lambda _: None, lambda: None)).close()


DOORS = [publish, subscribe, hear, take, queue_states]


async def test_every_way_to_the_broker_can_be_encrypted(trusted_url: str) -> None:
    """One address is enough for all of them."""
    for door in DOORS:
        await door(trusted_url)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
async def test_no_way_leads_to_a_broker_that_is_not_proven(amqps_url: str, door: Door) -> None:
    """No password is sent to whoever happens to answer."""
    with pytest.raises((OSError, GatemeshError, UnreachableError)):
        await door(amqps_url)


async def test_a_certificate_for_another_name_is_none(trusted_url: str) -> None:
    """It is for 127.0.0.1; that the same machine answers is no proof."""
    with pytest.raises((OSError, GatemeshError)):
        await publish(trusted_url.replace("127.0.0.1", "localhost"))


@dataclass(frozen=True)
class EncryptedServer:
    """A database that lets nobody in unencrypted."""

    url: str
    certificates: Certificates


@pytest.fixture(scope="module")
def encrypted_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EncryptedServer]:
    """Start a PostgreSQL that was built with TLS; the bundled one was not."""
    installed = sorted(DEBIAN_SERVERS.glob("*/bin/postgres"))
    if not installed:
        pytest.skip(f"no PostgreSQL with TLS in {DEBIAN_SERVERS}; install Debian's postgresql")
    root = tmp_path_factory.mktemp("encrypted")
    folder, programs = postgres.place_server(root, installed[-1].parent)
    port = choose_ports(["postgres"], random.Random())["postgres"]
    log = root / "postgres.log"
    user = postgres.unprivileged_user()
    server = PostgresServer(programs, folder, log, port, "secret", user)
    postgres.initialise(server)
    made = make_certificates(server.folder / "tls")
    if user:
        postgres.give_to(user, made.ca_file.parent, made.certificate_file, made.key_file)
    rule = "hostssl all all 127.0.0.1/32 scram-sha-256\n"
    (server.data / "pg_hba.conf").write_text(rule)
    with running(server, made):
        yield EncryptedServer(server.url("postgres"), made)


@contextmanager
def running(server: PostgresServer, made: Certificates) -> Iterator[None]:
    """Run the server, encrypted, while the block lasts."""
    options = (
        *("-c", "ssl=on", "-c", f"ssl_cert_file={made.certificate_file}"),
        *("-c", f"ssl_key_file={made.key_file}"),
    )
    with server.log_file.open("wb") as log:
        process = subprocess.Popen(
            [*postgres.program(server).argv, *options],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            user=server.run_as or None,
            group=pwd.getpwnam(server.run_as).pw_gid if server.run_as else None,
            extra_groups=[] if server.run_as else None,
        )
    try:
        url = f"{server.url('postgres')}?sslmode=require"
        assert wait_until(lambda: postgres.answers(url), DEADLINE_S), server.log_file.read_text()
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=DEADLINE_S)


async def is_encrypted(url: str) -> bool:
    """Ask as the manager does whether the connection is encrypted."""
    engine = open_database(url, pool_size=1, deadline_s=10)
    try:
        async with transaction(engine) as connection:
            found = await connection.execute(ASKED)
            return bool(found.scalar_one())
    finally:
        await engine.dispose()


def ask_plainly(url: str) -> bool:
    """Ask as migrations, replay and gatemesh-ctl do."""
    engine = create_engine(with_driver(url))
    with engine.connect() as connection:
        found = connection.execute(ASKED).scalar_one()
    engine.dispose()
    return bool(found)


async def test_a_proven_database_is_used_encrypted(encrypted_server: EncryptedServer) -> None:
    """By every way in which one is opened here."""
    url = secured_database(encrypted_server.url, encrypted_server.certificates.ca_file)
    assert await is_encrypted(url)
    assert ask_plainly(url)


async def test_a_database_that_is_not_proven_is_none(
    encrypted_server: EncryptedServer, tmp_path: Path
) -> None:
    """Another authority, another name, or no encryption at all."""
    ours = encrypted_server.certificates.ca_file
    strange = make_certificates(tmp_path).ca_file
    for url in (
        secured_database(encrypted_server.url, strange),
        secured_database(encrypted_server.url.replace("127.0.0.1", "localhost"), ours),
        f"{encrypted_server.url}?sslmode=disable",
    ):
        with pytest.raises(DatabaseUnavailableError):
            await is_encrypted(url)
        with pytest.raises(OperationalError):
            ask_plainly(url)
