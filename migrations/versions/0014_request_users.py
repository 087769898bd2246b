"""Which user of the broker sent a request; none where the message did not name one."""

from alembic import op

revision = "0014"
down_revision = "0012"
branch_labels = None
depends_on = None

COLUMNS = """message_id, requested_at, requested_by, action, pool, instance_id, reason, outcome,
            why, decided_at, dry_run"""


def upgrade() -> None:
    """Add the column, to the view too."""
    op.execute("ALTER TABLE requests ADD COLUMN user_id text")
    op.execute(
        f"CREATE OR REPLACE VIEW requests_v1 AS SELECT {COLUMNS}, user_id FROM requests"  # noqa: S608
    )


def downgrade() -> None:
    """Take the column away."""
    op.execute("DROP VIEW requests_v1")
    op.execute("ALTER TABLE requests DROP COLUMN user_id")
    op.execute(f"CREATE VIEW requests_v1 AS SELECT {COLUMNS} FROM requests")  # noqa: S608
