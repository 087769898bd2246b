"""A console over a large fleet, and one with a manager that decides; started once each."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import pytest
from tests.conftest import Bench, call_management
from tests.integration.console import rows
from tests.integration.console.decided import decided_console
from tests.integration.console.site import Client, Console

from gatemesh_console.tokens import Role
from gatemesh_health_manager.migrate import find_migrations, upgrade
from gatemesh_mesh import postgres


@dataclass(frozen=True)
class Fleet:
    """A console and the database that it reads."""

    console: Console
    database_url: str


@contextmanager
def own_database(bench: Bench) -> Iterator[str]:
    """Make an empty database while the block runs."""
    name = f"console_{uuid.uuid4().hex[:12]}"
    postgres.create_database(bench.database_url, name)
    yield urlsplit(bench.database_url)._replace(path=f"/{name}").geturl()
    postgres.drop_database(bench.database_url, name)


@contextmanager
def own_vhost(bench: Bench) -> Iterator[str]:
    """Make an empty virtual host while the block runs."""
    name = f"console-{uuid.uuid4().hex[:12]}"
    user = quote(str(urlsplit(bench.amqp_url).username), safe="")
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    call_management(bench, "PUT", f"vhosts/{name}", {})
    call_management(bench, "PUT", f"permissions/{name}/{user}", everything)
    yield urlsplit(bench.amqp_url)._replace(path=f"/{name}").geturl()
    call_management(bench, "DELETE", f"vhosts/{name}", None)


@pytest.fixture(scope="session")
def fleet(bench: Bench) -> Iterator[Fleet]:
    """Run a console over 500 instances and 10,000 verdicts."""
    with own_database(bench) as address:
        upgrade(address, find_migrations(None))
        rows.fill(postgres.plain_url(address))
        console = Console(address, bench.amqp_url)
        try:
            console.await_ready()
            yield Fleet(console, postgres.plain_url(address))
        finally:
            console.stop()


@pytest.fixture(scope="session")
def deciding(bench: Bench) -> Iterator[Console]:
    """Run a console and a manager over two instances."""
    with (
        own_database(bench) as address,
        own_vhost(bench) as amqp_url,
        decided_console(address, amqp_url) as console,
    ):
        yield console


@pytest.fixture
def operator(fleet: Fleet) -> Client:
    """Return a client that is signed in and may act."""
    client = fleet.console.client()
    assert client.sign_in(Role.OPERATOR).status == 303
    return client


@pytest.fixture
def viewer(fleet: Fleet) -> Client:
    """Return a client that is signed in and may only look."""
    client = fleet.console.client()
    assert client.sign_in(Role.VIEWER).status == 303
    return client
