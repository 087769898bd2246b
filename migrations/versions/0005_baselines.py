"""Yardsticks: sketches that wait, what each instance showed, and what was published."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE telemetry_windows ADD COLUMN sketches jsonb",
    """
    CREATE INDEX telemetry_sketches_wait ON telemetry_windows (window_end)
    WHERE sketches IS NOT NULL""",
    """
    CREATE TABLE baseline_sketches (
        pool text NOT NULL,
        model_version text NOT NULL,
        instance_id text NOT NULL,
        metric text NOT NULL,
        decoding text NOT NULL,
        script text NOT NULL,
        width double precision NOT NULL CHECK (width > 0),
        count double precision NOT NULL CHECK (count >= 0),
        bins jsonb NOT NULL,
        updated_at timestamptz NOT NULL,
        PRIMARY KEY (pool, model_version, instance_id, metric, decoding, script)
    )""",
    """
    CREATE TABLE baselines (
        pool text NOT NULL,
        model_version text NOT NULL,
        version bigint NOT NULL,
        shadow_share double precision NOT NULL,
        entries jsonb NOT NULL,
        changed_at timestamptz NOT NULL,
        PRIMARY KEY (pool, model_version)
    )""",
    """
    CREATE VIEW baselines_v1 AS
    SELECT b.pool, b.model_version, b.version, b.changed_at, e.metric, e.decoding, e.script,
        e.count AS answers, e.median, e.mad
    FROM baselines b, jsonb_to_recordset(b.entries) AS e(metric text, decoding text, script text,
        count bigint, median double precision, mad double precision)""",
)


def upgrade() -> None:
    """Create the tables and the view."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Drop them."""
    op.execute("DROP VIEW baselines_v1")
    op.execute("DROP TABLE baselines")
    op.execute("DROP TABLE baseline_sketches")
    op.execute("DROP INDEX telemetry_sketches_wait")
    op.execute("ALTER TABLE telemetry_windows DROP COLUMN sketches")
