"""The doctor at a real broker and a real database, without any service."""

from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from aio_pika import ExchangeType
from tests.conftest import Bench, call_management

from gatemesh_common.clock import utc_now
from gatemesh_common.declaring import declare_topology
from gatemesh_common.exchanges import SHADOW
from gatemesh_common.publisher import Publisher
from gatemesh_common.schema import SCHEMA_VERSION
from gatemesh_common.topology import REPORTS, SAMPLES
from gatemesh_ctl.doctor_broker import look_at_broker
from gatemesh_ctl.doctor_database import look_at_database
from gatemesh_ctl.findings import Finding, Level
from gatemesh_ctl.store import Store
from gatemesh_health_manager.migrate import find_migrations, upgrade
from gatemesh_mesh.postgres import plain_url

from .conftest import CommandLine

pytestmark = pytest.mark.integration

NOTHING = {"configure": "^$", "write": "^$", "read": "^$"}


def of(findings: list[Finding], check: str) -> list[Finding]:
    """Return the findings of one check."""
    return [one for one in findings if one.check == check]


async def test_a_topology_is_looked_at_and_left_as_it_is(vhost_url: str) -> None:
    """Nothing there, all there, a queue that is gone, one and an exchange that are others."""
    for _ in range(2):
        [missing] = of(await look_at_broker(vhost_url), "topology")
        assert missing.level is Level.FAULT
        assert {"vllm_control", REPORTS.name} <= set(missing.facts["missing"])
    async with Publisher(vhost_url, "test") as publisher:
        channel = await publisher.channel()
        await declare_topology(channel)
        found = await look_at_broker(vhost_url)
        assert {
            one.level for one in found if one.check in ("broker", "topology", "permissions")
        } == {Level.OK}
        assert of(found, "executor")[0].level is Level.FAULT
        await channel.queue_delete(REPORTS.name)
        await channel.queue_delete(SAMPLES.name)
        await channel.declare_queue(SAMPLES.name, durable=True)
        await channel.exchange_delete(SHADOW)
        await channel.declare_exchange(SHADOW, ExchangeType.DIRECT, durable=True)
    missing, other = of(await look_at_broker(vhost_url), "topology")
    assert missing.facts["missing"] == [REPORTS.name]
    assert other.facts["other"] == [SHADOW, SAMPLES.name]


async def test_rights_are_looked_at(bench: Bench, vhost_url: str) -> None:
    """Who may write nowhere is told; who may publish requests, and nothing else, is well."""
    async with Publisher(vhost_url, "test") as publisher:
        await declare_topology(await publisher.channel())
    vhost = urlsplit(vhost_url).path.removeprefix("/")
    user = f"guest-of-{vhost}"
    address = urlsplit(vhost_url)
    place = f"{address.hostname}:{address.port}"
    url = address._replace(netloc=f"{quote(user)}:pass-word@{place}").geturl()
    call_management(bench, "PUT", f"users/{user}", {"password": "pass-word", "tags": ""})
    try:
        for write, level in (("^$", Level.FAULT), ("^vllm_control$", Level.OK)):
            rights = {**NOTHING, "write": write}
            call_management(bench, "PUT", f"permissions/{vhost}/{user}", rights)
            found = await look_at_broker(url)
            assert [one.level for one in of(found, "permissions")] == [level]
            # Who may not declare cannot compare; newer brokers do not even show it.
            assert of(found, "topology")[0].level is Level.UNKNOWN
    finally:
        call_management(bench, "DELETE", f"users/{user}", None)


async def test_a_database_is_looked_at_as_a_reader(fresh_database: str, tmp_path: Path) -> None:
    """Empty, behind, as it should be; the role is enough, and the fleet is not there yet."""
    folder = find_migrations(None)
    [empty] = of(looked(fresh_database), "migrations")
    assert (empty.level, empty.facts["found"]) == (Level.FAULT, None)
    upgrade(fresh_database, folder, "0003")
    assert of(looked(fresh_database), "migrations")[0].what.startswith("behind")
    upgrade(fresh_database, folder)
    with psycopg.connect(plain_url(fresh_database), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS doctor_reader")
        connection.execute(
            "CREATE ROLE doctor_reader LOGIN PASSWORD 'pass' IN ROLE gatemesh_reader"
        )
        try:
            address = urlsplit(fresh_database)
            netloc = f"doctor_reader:pass@{address.hostname}:{address.port}"
            found = looked(address._replace(netloc=netloc).geturl())
        finally:
            connection.execute("DROP ROLE doctor_reader")
    levels = {one.check: one.level for one in found}
    assert levels == {
        "database": Level.OK,
        "reader role": Level.OK,
        "migrations": Level.OK,
        "instances": Level.WARNING,
        "agents": Level.UNKNOWN,
        "clock": Level.OK,
    }
    assert of(found, "migrations")[0].facts["found"] == SCHEMA_VERSION
    nowhere = "amqp://127.0.0.1:1/"
    addresses = {"GATEMESH_DATABASE_URL": fresh_database, "GATEMESH_AMQP_URL": nowhere}
    ctl = CommandLine(**addresses, GATEMESH_STATE=str(tmp_path))
    answer = await ctl.call("doctor", "--policy", "no-such-policy.toml")
    assert answer.code == 1
    assert "no rules were ever in force here" in answer.out


def looked(url: str) -> list[Finding]:
    """Return what is said of a database."""
    with Store(url) as store:
        return look_at_database(store, utc_now)


def test_a_clock_that_is_ahead_is_told(fresh_database: str) -> None:
    """This machine's, against the database's."""
    upgrade(fresh_database, find_migrations(None))
    with Store(fresh_database) as store:
        found = look_at_database(store, lambda: utc_now() + timedelta(seconds=30))
    [clock] = of(found, "clock")
    assert clock.level is Level.FAULT
    assert 29 < clock.facts["skew_s"] < 31
