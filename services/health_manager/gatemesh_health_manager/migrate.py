"""Brings the database's schema to the version that this manager needs."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg.errors import Diagnostic
from sqlalchemy import Connection, create_engine, event, inspect, text, update
from sqlalchemy.exc import OperationalError

from gatemesh_common.database import with_driver
from gatemesh_common.errors import DatabaseUnavailableError, SettingsError
from gatemesh_health_manager.store_tables import INSTANCES

if TYPE_CHECKING:
    from alembic.config import Config

log = logging.getLogger(__name__)

# Alembic takes a fifth of a manager's start, and only `migrate` needs it.
VERSION_TABLE = "alembic_version"


def find_migrations(folder: Path | None) -> Path:
    """Return the folder of the migrations: the given one, else the checkout's or the wheel's.

    Raises:
        SettingsError: none of them holds migrations.
    """
    package = Path(__file__).resolve().parent
    candidates = [folder] if folder else [package / "migrations", package.parents[2] / "migrations"]
    for candidate in candidates:
        if (candidate / "env.py").is_file():
            return candidate
    raise SettingsError(
        "no migrations found; set GATEMESH_HEALTH_MANAGER_MIGRATIONS_DIR to the folder "
        "`migrations` of the release"
    )


def config_for(folder: Path) -> "Config":
    """Return Alembic's settings, without an ini file."""
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return config


def upgrade(database_url: str, folder: Path, revision: str = "head") -> str:
    """Migrate the database and return the version reached.

    Raises:
        DatabaseUnavailableError: the database did not answer.
    """
    from alembic import command  # noqa: PLC0415

    with _connected(database_url) as connection:
        config = config_for(folder)
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        connection.commit()
        return current_version(connection) or ""


def forget_restarts(database_url: str) -> None:
    """Count no restart so far against a budget: everything was stopped and started on purpose.

    Raises:
        DatabaseUnavailableError: the database did not answer.
    """
    with _connected(database_url) as connection:
        connection.execute(update(INSTANCES).values(restarts=[]))
        connection.commit()


@contextmanager
def _connected(database_url: str) -> Iterator[Connection]:
    engine = create_engine(with_driver(database_url), connect_args={"connect_timeout": 10})
    event.listen(engine, "connect", _log_notices)
    try:
        with engine.connect() as connection:
            yield connection
    except OperationalError as error:
        raise DatabaseUnavailableError(f"database: {error.orig}") from error
    finally:
        engine.dispose()


def current_version(connection: Connection) -> str | None:
    """Return the version of the schema in a database; None when it is empty."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
    return found.scalar_one_or_none()


def head_version(folder: Path) -> str:
    """Return the version that the migrations lead to; their files are named by theirs."""
    numbers = (file.name.partition("_")[0] for file in (folder / "versions").glob("[0-9]*_*.py"))
    return max(numbers, default="")


def _log_notices(connection: psycopg.Connection[object], _record: object) -> None:
    """Show the server's warnings, such as a role that could not be made."""

    def show(diagnostic: Diagnostic) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            log.warning("migration_warning", extra={"warning": diagnostic.message_primary})

    connection.add_notice_handler(show)
