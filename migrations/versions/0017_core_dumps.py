"""Where the core dumps of incidents lie."""

from alembic import op
from sqlalchemy import text

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

COLUMN = "incidents.core_dump"


def parts_of(view: str) -> tuple[str, str]:
    """Return what a view selects, and all from its FROM on."""
    query = text("SELECT pg_get_viewdef(CAST(:view AS regclass))")
    definition = op.get_bind().execute(query, {"view": view}).scalar_one()
    head, word, tail = definition.rstrip(";").partition("\n   FROM ")
    return head, word + tail


def upgrade() -> None:
    """Add the column, to the view too, behind whatever it has by now."""
    op.execute("ALTER TABLE incidents ADD COLUMN core_dump text NOT NULL DEFAULT ''")
    head, tail = parts_of("incidents_v1")
    op.execute(f"CREATE OR REPLACE VIEW incidents_v1 AS {head}, {COLUMN}{tail}")


def downgrade() -> None:
    """Take it back."""
    head, tail = parts_of("incidents_v1")
    kept = ",".join(part for part in head.split(",") if part.split(".")[-1].strip() != "core_dump")
    op.execute("DROP VIEW incidents_v1")
    op.execute(f"CREATE VIEW incidents_v1 AS {kept}{tail}")
    op.execute("ALTER TABLE incidents DROP COLUMN core_dump")
