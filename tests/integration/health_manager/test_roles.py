"""A reader's login at a real database: it reads views, and changes nothing."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import errors, sql

from gatemesh_health_manager.migrate import upgrade
from gatemesh_mesh.postgres import plain_url

FOLDER = Path(__file__).parents[3] / "migrations"
FORBIDDEN = {
    "reads a table": "SELECT * FROM verdicts",
    "reads the outbox": "SELECT * FROM outbox",
    "reads how far the schema is": "SELECT * FROM alembic_version",
    "writes a verdict": "INSERT INTO verdicts DEFAULT VALUES",
    "changes a state": "UPDATE instances SET state = 'healthy'",
    "forgets what happened through a view": "DELETE FROM transitions_v1",
    "orders by hand": "INSERT INTO outbox DEFAULT VALUES",
    "forgets an incident": "DELETE FROM incidents",
    "forgets all of them": "TRUNCATE incidents",
    "drops a view": "DROP VIEW verdicts_v1",
    "hides a view behind a table": "CREATE TABLE verdicts_v1_mine (x int)",
    "locks managers out": "LOCK TABLE instances IN ACCESS EXCLUSIVE MODE",
    "becomes another": "SET ROLE pg_read_all_data",
    "gives itself rights": "GRANT SELECT ON verdicts TO gatemesh_reader",
    "makes a login": "CREATE ROLE another LOGIN",
    "reads passwords": "SELECT * FROM pg_authid",
    "reads a file of the server": "SELECT pg_read_file('/etc/passwd')",
}


@pytest.fixture
def reader_url(fresh_database: str) -> Iterator[str]:
    """Give the address of a migrated database with a login that is a reader and nothing else."""
    upgrade(fresh_database, FOLDER)
    name = f"reader_{uuid.uuid4().hex[:8]}"
    login = sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'pw' IN ROLE gatemesh_reader")
    with psycopg.connect(plain_url(fresh_database), autocommit=True) as owner:
        owner.execute(login.format(sql.Identifier(name)))
    address = urlsplit(plain_url(fresh_database))
    yield address._replace(netloc=f"{name}:pw@{address.hostname}:{address.port}").geturl()
    with psycopg.connect(plain_url(fresh_database), autocommit=True) as owner:
        owner.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def is_refused(reader: "psycopg.Connection[tuple[object, ...]]", statement: str) -> bool:
    """Try a statement; True when it lacks the right to."""
    try:
        with reader.transaction():
            reader.execute(statement.encode())
    except errors.InsufficientPrivilege:
        return True
    return False


def test_a_reader_changes_nothing(reader_url: str) -> None:
    """Whatever it tries is refused for its rights, and not because there is no such table."""
    with psycopg.connect(reader_url, autocommit=True) as reader:
        allowed = [what for what, asked in FORBIDDEN.items() if not is_refused(reader, asked)]
    assert allowed == []


def test_a_reader_reads_views(reader_url: str) -> None:
    """By its own login, as people and dashboards do; all but the one of texts."""
    with psycopg.connect(reader_url) as reader:
        names = reader.execute(
            "SELECT viewname FROM pg_views WHERE schemaname = 'public' AND viewname ~ '_v[0-9]+$' "
            "AND viewname <> 'capture_texts_v1'"
        ).fetchall()
        assert len(names) >= 8
        for (name,) in names:
            reader.execute(sql.SQL("SELECT * FROM {} LIMIT 1").format(sql.Identifier(name)))
