"""Requests that were only tried out: what they would have done stands in `why`."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

COLUMNS = """message_id, requested_at, requested_by, action, pool, instance_id, reason, outcome,
            why, decided_at"""


def upgrade() -> None:
    """Add the column, to the view too."""
    op.execute("ALTER TABLE requests ADD COLUMN dry_run boolean NOT NULL DEFAULT false")
    op.execute(
        f"CREATE OR REPLACE VIEW requests_v1 AS SELECT {COLUMNS}, dry_run FROM requests"  # noqa: S608
    )


def downgrade() -> None:
    """Take the column away, and the trials with it."""
    op.execute("DROP VIEW requests_v1")
    op.execute("DELETE FROM requests WHERE dry_run")
    op.execute("ALTER TABLE requests DROP COLUMN dry_run")
    op.execute(f"CREATE VIEW requests_v1 AS SELECT {COLUMNS} FROM requests")  # noqa: S608
