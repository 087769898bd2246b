"""Playbooks by any name, and the steps of each incident's."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

KNOWN = "'restart','stop','repair','replace','roll_back'"

INCIDENTS = """
    SELECT incident_id, instance_id, pool, incarnation, condition, status, cause, reason,
        playbook, opened_at, ended_at,
        extract(epoch FROM coalesce(ended_at, now()) - opened_at)::double precision
            AS duration_s,
        policy_version, CASE WHEN would = '' THEN 'act' ELSE 'observe' END AS mode, would,
        core_dump{more}
    FROM incidents"""

POOLS = """
    SELECT p.pool, count(i.instance_id) AS instances,
        count(i.instance_id) FILTER (WHERE i.weight > 0) AS in_rotation,
        count(c.incident_id) FILTER (WHERE c.would = ''{acting}) AS held_incidents,
        p.paused, p.braked_at IS NOT NULL AS braked, p.braked_at, p.brake_reason,
        p.brake_reset_at, p.brake_reset, p.routing_version, p.mode,
        count(c.incident_id) FILTER (WHERE c.would <> '') AS observed_incidents,
        p.suspect_version{more}
    FROM pools p
    LEFT JOIN instances i ON i.pool = p.pool AND i.base_url IS NOT NULL
    LEFT JOIN incidents c ON c.instance_id = i.instance_id AND c.status = 'held'
    GROUP BY p.pool"""

TOLD = "count(c.incident_id) FILTER (WHERE c.would = '' AND c.steps = '{tell}') AS told_incidents"
NEW = {
    "incidents_v1": INCIDENTS.format(more=", steps"),
    "pools_v1": POOLS.format(acting=" AND c.steps <> '{tell}'", more=f", {TOLD}"),
}
OLD = {"incidents_v1": INCIDENTS.format(more=""), "pools_v1": POOLS.format(acting="", more="")}


def upgrade() -> None:
    """Allow any word, add the column, to the view too."""
    op.execute("ALTER TABLE incidents ADD COLUMN steps text[] NOT NULL DEFAULT '{}'")
    op.execute("ALTER TABLE incidents DROP CONSTRAINT incidents_playbook_check")
    op.execute(
        "ALTER TABLE incidents ADD CONSTRAINT incidents_playbook_check "
        "CHECK (playbook ~ '^[a-z][a-z0-9_]{0,39}$')"
    )
    for name, query in NEW.items():
        op.execute(f"CREATE OR REPLACE VIEW {name} AS {query}")


def downgrade() -> None:
    """Allow the known words only; incidents by other ones are kept, new ones are refused."""
    for name in OLD:
        op.execute(f"DROP VIEW {name}")
    op.execute("ALTER TABLE incidents DROP COLUMN steps")
    op.execute("ALTER TABLE incidents DROP CONSTRAINT incidents_playbook_check")
    op.execute(
        "ALTER TABLE incidents ADD CONSTRAINT incidents_playbook_check "
        f"CHECK (playbook IN ({KNOWN})) NOT VALID"
    )
    for name, query in OLD.items():
        op.execute(f"CREATE VIEW {name} AS {query}")
