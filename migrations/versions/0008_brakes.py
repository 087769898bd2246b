"""The fleet brake (when it fell and why, who was accused when), slow start, flap damping."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    ALTER TABLE pools
        ADD COLUMN braked_at timestamptz,
        ADD COLUMN brake_reason text NOT NULL DEFAULT '',
        ADD COLUMN brake_reset_at timestamptz,
        ADD COLUMN brake_reset text NOT NULL DEFAULT ''""",
    """
    ALTER TABLE instances
        ADD COLUMN accused_at timestamptz,
        ADD COLUMN readmitted_at timestamptz,
        ADD COLUMN outs timestamptz[] NOT NULL DEFAULT '{}'""",
    """
    CREATE VIEW pools_v1 AS
    SELECT p.pool, count(i.instance_id) AS instances,
        count(i.instance_id) FILTER (WHERE i.weight > 0) AS in_rotation,
        count(c.incident_id) AS held_incidents,
        p.paused, p.braked_at IS NOT NULL AS braked, p.braked_at, p.brake_reason,
        p.brake_reset_at, p.brake_reset, p.routing_version
    FROM pools p
    LEFT JOIN instances i ON i.pool = p.pool AND i.base_url IS NOT NULL
    LEFT JOIN incidents c ON c.instance_id = i.instance_id AND c.status = 'held'
    GROUP BY p.pool""",
)


def upgrade() -> None:
    """Add the columns and the view; `env.py` lets the readers' role read it."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Take them back."""
    op.execute("DROP VIEW pools_v1")
    op.execute(
        "ALTER TABLE instances DROP COLUMN accused_at, DROP COLUMN readmitted_at, DROP COLUMN outs"
    )
    op.execute(
        "ALTER TABLE pools DROP COLUMN braked_at, DROP COLUMN brake_reason, "
        "DROP COLUMN brake_reset_at, DROP COLUMN brake_reset"
    )
