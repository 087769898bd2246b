"""The inputs of decisions, so that they can be replayed, with the rules of then or with others."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

VIEWS = {
    "decision_inputs_v1": """
        SELECT id, at, kind, policy_version, pools, body, seen FROM decision_inputs""",
    "decided_verdicts_v1": """
        SELECT id, message_id, instance_id, pool, incarnation, request_id, check_level, outcome,
            reason, hard, prompt_key, tenant, attribution, details, "timestamp",
            counted_at, received_at
        FROM verdicts""",
    "policy_versions_v1": "SELECT version, body, first_used_at FROM policy_versions",
}


def upgrade() -> None:
    """Create the table and the views; `env.py` lets the readers' role read them."""
    op.execute("""
    CREATE TABLE decision_inputs (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at timestamptz NOT NULL,
        kind text NOT NULL,
        policy_version text NOT NULL REFERENCES policy_versions,
        pools text[] NOT NULL,
        body jsonb NOT NULL,
        seen jsonb NOT NULL DEFAULT '{}'
    )""")
    op.execute("CREATE INDEX decision_inputs_at ON decision_inputs USING brin (at)")
    op.execute("CREATE INDEX decision_inputs_fleet ON decision_inputs (at) WHERE kind = 'fleet'")
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")


def downgrade() -> None:
    """Drop them."""
    for name in reversed(VIEWS):
        op.execute(f"DROP VIEW {name}")
    op.execute("DROP TABLE decision_inputs")
