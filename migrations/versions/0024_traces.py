"""Which trace a verdict and an incident belong to."""

from alembic import op
from sqlalchemy import text

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

VIEWS = {"incidents": ("incidents_v1",), "verdicts": ("verdicts_v1", "decided_verdicts_v1")}


def parts_of(view: str) -> tuple[str, str]:
    """Return what a view selects, and all from its FROM on."""
    query = text("SELECT pg_get_viewdef(CAST(:view AS regclass))")
    definition = op.get_bind().execute(query, {"view": view}).scalar_one()
    head, word, tail = definition.rstrip(";").partition("\n   FROM ")
    return head, word + tail


def upgrade() -> None:
    """Add the columns, to the views too, behind whatever they have by now."""
    for table, views in VIEWS.items():
        op.execute(f"ALTER TABLE {table} ADD COLUMN traceparent text")
        for view in views:
            head, tail = parts_of(view)
            op.execute(f"CREATE OR REPLACE VIEW {view} AS {head}, {table}.traceparent{tail}")


def downgrade() -> None:
    """Take them back."""
    for table, views in VIEWS.items():
        for view in views:
            head, tail = parts_of(view)
            parts = head.split(",")
            kept = ",".join(one for one in parts if one.split(".")[-1].strip() != "traceparent")
            op.execute(f"DROP VIEW {view}")
            op.execute(f"CREATE VIEW {view} AS {kept}{tail}")
        op.execute(f"ALTER TABLE {table} DROP COLUMN traceparent")
