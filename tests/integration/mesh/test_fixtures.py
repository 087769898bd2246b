"""The fixtures hand out a working, empty corner of a real broker and database."""

import aio_pika
import psycopg
import pytest

from gatemesh_common.broker import declare_topology
from gatemesh_mesh.postgres import plain_url

pytestmark = pytest.mark.integration


async def test_a_fresh_vhost_takes_our_topology(vhost_url: str) -> None:
    """Test authors can declare the topology at once."""
    async with await aio_pika.connect(vhost_url) as connection:
        await declare_topology(await connection.channel())


def test_a_fresh_database_is_empty(fresh_database: str) -> None:
    """Test authors can migrate from nothing."""
    with psycopg.connect(plain_url(fresh_database)) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_stat_user_tables").fetchone()
    assert tables == (0,)
