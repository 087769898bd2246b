"""Streamed answers by the time to their first token, in each telemetry window."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

TRAFFIC = """
    SELECT window_start, window_end, pool, instance_id, incarnation, agent_id, requests,
        client_errors, server_errors, tokens, unguarded, gates{more}
    FROM telemetry_windows"""


def upgrade() -> None:
    """Add the column, to the view too."""
    op.execute("ALTER TABLE telemetry_windows ADD COLUMN first_tokens jsonb")
    more = TRAFFIC.format(more=", first_tokens")
    op.execute(f"CREATE OR REPLACE VIEW traffic_v1 AS {more}")


def downgrade() -> None:
    """Take it away."""
    op.execute("DROP VIEW traffic_v1")
    op.execute("ALTER TABLE telemetry_windows DROP COLUMN first_tokens")
    op.execute(f"CREATE VIEW traffic_v1 AS {TRAFFIC.format(more='')}")
