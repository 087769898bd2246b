"""Incidents may be named by conditions that the rules define."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

CONDITIONS = "'A','B','C','D','exit','probes','overdue','operator'"


def upgrade() -> None:
    """Allow any word."""
    op.execute("ALTER TABLE incidents DROP CONSTRAINT incidents_condition_check")
    op.execute(
        "ALTER TABLE incidents ADD CONSTRAINT incidents_condition_check "
        "CHECK (condition ~ '^[A-Za-z][A-Za-z0-9_]{0,39}$')"
    )


def downgrade() -> None:
    """Allow the known ones only; incidents by other words are kept, new ones are refused."""
    op.execute("ALTER TABLE incidents DROP CONSTRAINT incidents_condition_check")
    op.execute(
        "ALTER TABLE incidents ADD CONSTRAINT incidents_condition_check "
        f"CHECK (condition IN ({CONDITIONS})) NOT VALID"
    )
