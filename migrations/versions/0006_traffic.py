"""Traffic as agents saw it: how many answers there were, and how many no gate looked at."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the view; `env.py` lets the readers' role read it."""
    op.execute("""
    CREATE VIEW traffic_v1 AS
    SELECT window_start, window_end, pool, instance_id, incarnation, agent_id, requests,
        client_errors, server_errors, tokens, unguarded, gates
    FROM telemetry_windows""")


def downgrade() -> None:
    """Drop the view."""
    op.execute("DROP VIEW traffic_v1")
