"""Commands that the executor refused, forgeries and copies among them."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# What a stranger wrote refers to nothing of ours, and fits no integer.
STATEMENTS = (
    """
    CREATE TABLE refused_commands (
        message_id text PRIMARY KEY,
        command_id text NOT NULL,
        instance_id text NOT NULL,
        pool text NOT NULL,
        action text NOT NULL,
        incarnation numeric NOT NULL,
        fence numeric NOT NULL,
        reason text NOT NULL,
        detail text NOT NULL,
        ends_command boolean NOT NULL,
        at timestamptz NOT NULL,
        received_at timestamptz NOT NULL
    )""",
    "CREATE INDEX refused_commands_received ON refused_commands (received_at)",
    """
    CREATE VIEW refused_commands_v1 AS
    SELECT message_id, at, instance_id, pool, action, incarnation, fence, command_id, reason,
        detail, ends_command, received_at
    FROM refused_commands""",
)


def upgrade() -> None:
    """Create the table and the view."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Drop them."""
    op.execute("DROP VIEW refused_commands_v1")
    op.execute("DROP TABLE refused_commands")
