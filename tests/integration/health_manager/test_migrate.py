"""Migrations on a real server: repeated, at once, without rights, and what readers may read."""

import subprocess
import sys
import uuid
from urllib.parse import urlsplit

import psycopg
import pytest
from alembic import command
from sqlalchemy import create_engine

from gatemesh_common.errors import DatabaseUnavailableError
from gatemesh_health_manager.migrate import (
    config_for,
    find_migrations,
    forget_restarts,
    head_version,
    upgrade,
)
from gatemesh_mesh.postgres import plain_url

pytestmark = pytest.mark.integration
FOLDER = find_migrations(None)


def test_a_second_run_changes_nothing(fresh_database: str) -> None:
    """Every deployment may run it."""
    assert upgrade(fresh_database, FOLDER) == head_version(FOLDER)
    assert upgrade(fresh_database, FOLDER) == head_version(FOLDER)


def test_several_at_once_wait_for_each_other(fresh_database: str) -> None:
    """Replicas that start together."""
    program = [sys.executable, "-m", "gatemesh_health_manager", "migrate"]
    environment = {"GATEMESH_DATABASE_URL": fresh_database, "PATH": ""}
    running = [subprocess.Popen(program, env=environment) for _ in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert upgrade(fresh_database, FOLDER) == head_version(FOLDER)


def test_a_planned_start_forgets_restarts(fresh_database: str) -> None:
    """Whoever stops and starts everything in a row has not used up any budget."""
    upgrade(fresh_database, FOLDER)
    with psycopg.connect(plain_url(fresh_database)) as connection:
        connection.execute("INSERT INTO pools (pool) VALUES ('default')")
        connection.execute(
            "INSERT INTO instances (instance_id, pool, state, state_since, incarnation, running,"
            " model_version, penalty, penalty_at, fence, restarts, weight) VALUES"
            " ('engine-0', 'default', 'probation', now(), 1, true, 'm', 0, now(), 0,"
            " array_fill(now(), ARRAY[3]), 0)"
        )
        connection.commit()
        forget_restarts(fresh_database)
        assert connection.execute("SELECT restarts FROM instances").fetchall() == [([],)]


TEXTS = "capture_texts_v1"

SERVING_ROWS = (
    "INSERT INTO pools (pool) VALUES ('default')",
    "INSERT INTO policy_versions VALUES ('v', '{}', now())",
    "INSERT INTO instances (instance_id, pool, state, state_since, incarnation, running, weight,"
    " base_url, model_version, penalty, penalty_at, fence, restarts) VALUES"
    " ('engine-0', 'default', 'healthy', now(), 1, true, 1, 'http://x', 'm', 0, now(), 0, '{}')",
    "INSERT INTO verdicts (message_id, instance_id, pool, incarnation, request_id, check_level,"
    " outcome, reason, hard, type, choice, prompt_key, decoding, details, timestamp, counted_at,"
    " received_at) VALUES ('m', 'engine-0', 'default', 1, 'r', 'L1', 'failed', 'empty', false,"
    " 'verdict', 0, 'p', 'greedy', '{}', now(), now(), now())",
    "INSERT INTO incidents VALUES ('i', 'engine-0', 'default', 1, 'A', 'held', 'restart', 'many',"
    " 'many', 'v', now(), NULL)",
)
"""One row of each kind, as the schema before condition C wrote them."""


def test_rows_of_an_older_schema_stay_as_they_are(fresh_database: str) -> None:
    """Old rows are read with the new columns' defaults, and old statements still write."""
    upgrade(fresh_database, FOLDER, "0003")
    with psycopg.connect(plain_url(fresh_database), autocommit=True) as connection:
        for statement in SERVING_ROWS:
            connection.execute(statement.encode())
        assert upgrade(fresh_database, FOLDER) == head_version(FOLDER)
        connection.execute(SERVING_ROWS[3].replace("'m',", "'n',", 1).encode())
        rows = connection.execute("SELECT attribution, reason FROM verdicts_v1").fetchall()
        assert rows == [("unknown", "empty")] * 2
        health = "SELECT state, condition, probed_at, shift_until FROM instance_health_v1"
        assert connection.execute(health).fetchall() == [("healthy", "A", None, None)]
        widened = "UPDATE incidents SET condition = 'D', playbook = 'replace'"
        assert connection.execute(widened).rowcount == 1


def test_down_and_up_again(fresh_database: str) -> None:
    """Each step can be undone."""
    upgrade(fresh_database, FOLDER)
    engine = create_engine(fresh_database)
    with engine.connect() as connection:
        config = config_for(FOLDER)
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
        connection.commit()
    engine.dispose()
    assert upgrade(fresh_database, FOLDER) == head_version(FOLDER)


def test_readers_read_views_and_nothing_else(fresh_database: str) -> None:
    """In every database of the server, though the role is the server's."""
    upgrade(fresh_database, FOLDER)
    with psycopg.connect(plain_url(fresh_database)) as connection:
        names = connection.execute(
            "SELECT viewname FROM pg_views WHERE schemaname = 'public'"
        ).fetchall()
        assert len(names) >= 8
        connection.execute("SET ROLE gatemesh_reader")
        for name in {name for (name,) in names} - {TEXTS}:
            connection.execute(f"SELECT * FROM {name}".encode())  # noqa: S608 (our own views)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM verdicts")


@pytest.mark.parametrize("forbidden", ["capture_texts_v1", "captures"])
def test_readers_do_not_read_text(fresh_database: str, forbidden: str) -> None:
    """Neither the view that shows it nor the table that holds it."""
    upgrade(fresh_database, FOLDER)
    with psycopg.connect(plain_url(fresh_database)) as connection:
        connection.execute("SET ROLE gatemesh_reader")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(f"SELECT * FROM {forbidden}".encode())  # noqa: S608


def test_evidence_is_read_by_a_role_of_its_own(fresh_database: str) -> None:
    """Every view, and no table."""
    upgrade(fresh_database, FOLDER)
    with psycopg.connect(plain_url(fresh_database)) as connection:
        connection.execute("SET ROLE gatemesh_evidence")
        for name in (TEXTS, "captures_v1", "incidents_v1"):
            connection.execute(f"SELECT * FROM {name}".encode())  # noqa: S608 (our own views)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM captures")


def test_a_user_without_rights_over_roles_is_told(
    fresh_database: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The schema is there; who must make the role is in the log."""
    name = f"owner_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(plain_url(fresh_database), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'pw'".encode())
        connection.execute(f"GRANT CREATE ON SCHEMA public TO {name}".encode())
        renamed = rename_reader(connection, "gatemesh_reader", f"reader_{name}")
    address = urlsplit(fresh_database)
    url = address._replace(netloc=f"{name}:pw@{address.hostname}:{address.port}").geturl()
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "gatemesh_health_manager", "migrate"],
            env={"GATEMESH_DATABASE_URL": url, "PATH": ""},
            check=False,
            timeout=60,
        )
        assert ended.returncode == 0
        assert "lacks CREATEROLE" in capfd.readouterr().out
    finally:
        with psycopg.connect(plain_url(fresh_database), autocommit=True) as connection:
            if renamed:
                rename_reader(connection, f"reader_{name}", "gatemesh_reader")
            connection.execute(f"DROP OWNED BY {name}".encode())
            connection.execute(f"DROP ROLE {name}".encode())


def rename_reader(connection: psycopg.Connection[tuple[object, ...]], old: str, new: str) -> bool:
    """Rename the readers' role, which belongs to the whole server; False when it is not there."""
    found = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [old]).fetchone()
    if found:
        connection.execute(f"ALTER ROLE {old} RENAME TO {new}".encode())
    return found is not None


def test_a_server_that_is_away_is_told_in_one_line() -> None:
    """Not by a stack of Python."""
    with pytest.raises(DatabaseUnavailableError):
        upgrade("postgresql://nobody:pw@127.0.0.1:1/none", FOLDER)
    ended = subprocess.run(
        [sys.executable, "-m", "gatemesh_health_manager", "migrate"],
        env={"GATEMESH_DATABASE_URL": "postgresql://nobody:pw@127.0.0.1:1/none", "PATH": ""},
        check=False,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("cannot migrate: database: ")
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        ([], {}, "GATEMESH_DATABASE_URL"),
        (["mingle"], {}, "usage:"),
        (
            [],
            {
                "GATEMESH_DATABASE_URL": "postgresql://u:p@127.0.0.1:1/d",
                "GATEMESH_HEALTH_MANAGER_POLICY_FILE": "not-there.toml",
            },
            "not-there.toml: cannot be read",
        ),
    ],
)
def test_a_start_that_cannot_be_ends_with_one_message(
    arguments: list[str], environment: dict[str, str], told: str
) -> None:
    """Exit code 2: starting again cannot help."""
    ended = subprocess.run(
        [sys.executable, "-m", "gatemesh_health_manager", *arguments],
        env={"PATH": "", **environment},
        check=False,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 2
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr
