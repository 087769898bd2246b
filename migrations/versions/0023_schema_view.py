"""The schema's version, for readers too: whether migrations are behind can be asked by SQL."""

from alembic import op

revision = "0023"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the view; `env.py` lets the readers' role read it."""
    op.execute("CREATE VIEW schema_v1 AS SELECT version_num AS version FROM alembic_version")


def downgrade() -> None:
    """Drop it."""
    op.execute("DROP VIEW schema_v1")
