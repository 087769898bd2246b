"""Verdicts, inputs of decisions and telemetry windows in one partition a day.

The table that is there stays whole: it becomes the oldest partition, up to the end of the last day
that it holds, and what comes later goes into days of their own. Views and statements name the same
table as before, so a manager of the release before goes on through the migration.
"""

from dataclasses import dataclass
from datetime import datetime

from alembic import op
from sqlalchemy import Connection, text

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

DAYS_AHEAD = 7


@dataclass(frozen=True)
class Divided:
    """A table, the moment that tells a row's day, and the keys that it has whole and divided."""

    name: str
    moment: str
    numbered: bool
    whole_key: str
    divided_key: str | None
    references: str = ""


TABLES = (
    Divided("verdicts", "received_at", numbered=True, whole_key="id", divided_key=None),
    Divided(
        "decision_inputs",
        "at",
        numbered=True,
        whole_key="id",
        divided_key=None,
        references="FOREIGN KEY (policy_version) REFERENCES policy_versions",
    ),
    Divided(
        "telemetry_windows",
        "window_end",
        numbered=False,
        whole_key="message_id",
        divided_key="message_id, window_end",
    ),
)

OF_VIEWS = """
    SELECT DISTINCT c.relname, pg_get_viewdef(c.oid)
    FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class c ON c.oid = r.ev_class
    WHERE d.refobjid = CAST(:name AS regclass) AND d.classid = 'pg_rewrite'::regclass
        AND c.relkind = 'v'"""
OF_INDEXES = """
    SELECT i.indexname, i.indexdef FROM pg_indexes i JOIN pg_index x
        ON x.indexrelid = CAST(quote_ident(i.indexname) AS regclass)
    WHERE i.schemaname = current_schema() AND i.tablename = :name AND NOT x.indisprimary"""
OF_KEY = """
    SELECT conname FROM pg_constraint WHERE contype = 'p' AND conrelid = CAST(:name AS regclass)"""
NEXT_DAY = text("SELECT date_trunc('day', now()) + interval '1 day'")


DAYS = text("""
    SELECT to_char(day, 'YYYYMMDD'), day, day + interval '1 day'
    FROM generate_series(date_trunc('day', coalesce(CAST(:first AS timestamptz), now())),
        coalesce(CAST(:first AS timestamptz), now()) + make_interval(days => :ahead),
        interval '1 day') AS day""")


def upgrade() -> None:
    """Put each table under a divided one of its name."""
    connection = op.get_bind()
    connection.execute(text("SET LOCAL timezone TO 'UTC'"))
    for table in TABLES:
        divide(connection, table)


def downgrade() -> None:
    """Make them whole again."""
    connection = op.get_bind()
    for table in reversed(TABLES):
        unite(connection, table)


def divide(connection: Connection, table: Divided) -> None:
    """Make the table the oldest partition of a new one that takes its name."""
    name, old = table.name, f"{table.name}_before"
    views, indexes = views_of(connection, name), indexes_of(connection, name)
    move_aside(connection, table, old, indexes)
    run(
        connection,
        f"CREATE TABLE {name} (LIKE {old} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) "
        f"PARTITION BY RANGE ({table.moment})",
    )
    add_keys(connection, table, table.divided_key, number_from(connection, table, old))
    for _, definition in indexes:
        run(connection, definition)
    run(connection, f"CREATE TABLE {name}_other PARTITION OF {name} DEFAULT")
    restore(connection, views)
    if connection.execute(text(f"SELECT 1 FROM {old} LIMIT 1")).first():  # noqa: S608
        attach(connection, table, old)
    else:
        run(connection, f"DROP TABLE {old}")
        add_days(connection, table, None)


def unite(connection: Connection, table: Divided) -> None:
    """Copy every partition into one table."""
    name, old = table.name, f"{table.name}_days"
    views, indexes = views_of(connection, name), indexes_of(connection, name)
    move_aside(connection, table, old, indexes)
    run(connection, f"CREATE TABLE {name} (LIKE {old} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)")
    run(connection, f"INSERT INTO {name} SELECT * FROM {old}")  # noqa: S608
    add_keys(connection, table, table.whole_key, number_from(connection, table, old))
    restore(connection, views)
    run(connection, f"DROP TABLE {old}")
    for _, definition in indexes:
        run(connection, definition.replace(" ON ONLY ", " ON "))


def move_aside(
    connection: Connection, table: Divided, aside: str, indexes: list[tuple[str, str]]
) -> None:
    """Give a table and its indexes other names, and take its numbering away."""
    if table.numbered:
        run(connection, f"ALTER TABLE {table.name} ALTER COLUMN id DROP IDENTITY")
    run(connection, f"ALTER TABLE {table.name} RENAME TO {aside}")
    suffix = aside.removeprefix(table.name)
    for (key,) in connection.execute(text(OF_KEY), {"name": aside}).all():
        run(connection, f"ALTER TABLE {aside} RENAME CONSTRAINT {key} TO {key}{suffix}")
    for index, _ in indexes:
        run(connection, f"ALTER INDEX {index} RENAME TO {index}{suffix}")


def number_from(connection: Connection, table: Divided, aside: str) -> int:
    """Return the number after the last one."""
    if not table.numbered:
        return 0
    query = f"SELECT coalesce(max(id), 0) + 1 FROM {aside}"  # noqa: S608
    return int(connection.execute(text(query)).scalar_one())


def add_keys(connection: Connection, table: Divided, key: str | None, number: int) -> None:
    """Add primary key, foreign key and numbering."""
    if key:
        run(connection, f"ALTER TABLE {table.name} ADD PRIMARY KEY ({key})")
    if table.references:
        run(connection, f"ALTER TABLE {table.name} ADD {table.references}")
    if table.numbered:
        run(
            connection,
            f"ALTER TABLE {table.name} ALTER COLUMN id "
            f"ADD GENERATED ALWAYS AS IDENTITY (START WITH {number})",
        )


def attach(connection: Connection, table: Divided, old: str) -> None:
    """Attach the old table up to the end of today; rows from clocks that ran ahead leave it."""
    name, end = table.name, connection.execute(NEXT_DAY).scalar_one()
    add_days(connection, table, end)
    ahead = f"FROM {old} WHERE {table.moment} >= '{end}'"
    run(connection, f"INSERT INTO {name} OVERRIDING SYSTEM VALUE SELECT * {ahead}")
    run(connection, f"DELETE {ahead}")
    if table.divided_key:
        # A part may have no other key than the whole has.
        [key] = connection.execute(text(OF_KEY), {"name": old}).scalars()
        run(connection, f"ALTER TABLE {old} DROP CONSTRAINT {key}")
        run(connection, f"ALTER TABLE {old} ADD PRIMARY KEY ({table.divided_key})")
    run(
        connection,
        f"ALTER TABLE {name} ATTACH PARTITION {old} FOR VALUES FROM (MINVALUE) TO ('{end}')",
    )


def add_days(connection: Connection, table: Divided, first: datetime | None) -> None:
    """Add the days from a moment on, or from now."""
    known = {"first": first, "ahead": DAYS_AHEAD}
    for day, begin, end in connection.execute(DAYS, known).all():
        run(
            connection,
            f"CREATE TABLE {table.name}_{day} PARTITION OF {table.name} "
            f"FOR VALUES FROM ('{begin}') TO ('{end}')",
        )


def views_of(connection: Connection, name: str) -> list[tuple[str, str]]:
    """Return the views over a table, with their queries."""
    return [(view, query) for view, query in connection.execute(text(OF_VIEWS), {"name": name})]


def indexes_of(connection: Connection, name: str) -> list[tuple[str, str]]:
    """Return the indexes of a table but its key, with the statements that make them."""
    return [(index, made) for index, made in connection.execute(text(OF_INDEXES), {"name": name})]


def restore(connection: Connection, views: list[tuple[str, str]]) -> None:
    """Have views read the table that has the name now; who may read them stays."""
    for view, query in views:
        run(connection, f"CREATE OR REPLACE VIEW {view} AS {query}")


def run(connection: Connection, statement: str) -> None:
    """Run one statement as it is."""
    connection.exec_driver_sql(statement)
