"""Indexes by moment, so that the console's questions cost the same however long the history is."""

from alembic import op

revision = "0022"
down_revision = "0019"
branch_labels = None
depends_on = None

INDEXES = {
    "transitions_at": "transitions (at)",
    "incidents_ended": "incidents (ended_at)",
    "commands_issued": "commands (issued_at)",
    "command_steps_at": "command_steps (at)",
    "command_reports_at": "command_reports (at)",
    "requests_asked": "requests (requested_at, message_id)",
    # Rows of one day lie in the order of their arrival: a few pages tell where a moment is.
    "telemetry_ended": "telemetry_windows USING brin (window_end)",
}


def upgrade() -> None:
    """Create them."""
    for name, target in INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON {target}")


def downgrade() -> None:
    """Drop them."""
    for name in reversed(INDEXES):
        op.execute(f"DROP INDEX {name}")
