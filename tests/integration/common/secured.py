"""A virtual host whose users have the rights of the table, for the tests of this folder."""

import secrets
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import aio_pika
from aio_pika.abc import AbstractChannel
from tests.conftest import Bench, call_management

from gatemesh_common.broker_definitions import Facts, Site, definitions
from gatemesh_common.broker_users import SERVICES


@dataclass(frozen=True)
class Secured:
    """One imported `definitions.json` and the passwords that belong to it."""

    bench: Bench
    site: Site
    passwords: dict[str, str]

    @property
    def facts(self) -> Facts:
        """What was imported."""
        return definitions(self.passwords, self.site)

    def url(self, service: str) -> str:
        """Return the broker's address with the service's own login."""
        address = urlsplit(self.bench.amqp_url)
        login = f"{self.site.user(service)}:{self.passwords[service]}"
        place = f"{login}@{address.hostname}:{address.port}"
        return address._replace(netloc=place, path=f"/{self.site.vhost}").geturl()

    @asynccontextmanager
    async def channel(self, service: str) -> AsyncIterator[AbstractChannel]:
        """Give a channel with the service's own login."""
        connection = await aio_pika.connect(self.url(service))
        async with connection:
            yield await connection.channel(on_return_raises=True)


@contextmanager
def secured_site(bench: Bench) -> Iterator[Secured]:
    """Import users and topology into a virtual host of their own; both go afterwards."""
    name = f"secured-{uuid.uuid4().hex[:12]}"
    passwords = {service: secrets.token_hex(16) for service in SERVICES}
    found = Secured(bench, Site(name, name), passwords)
    call_management(bench, "POST", "definitions", found.facts)
    try:
        yield found
    finally:
        call_management(bench, "DELETE", f"vhosts/{name}", None)
        for service in SERVICES:
            call_management(bench, "DELETE", f"users/{found.site.user(service)}", None)
