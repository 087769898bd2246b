"""Operators' weight ceilings; model versions before the present ones, and going back to them."""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

ACTIONS = "'drain','eject','restart','readmit','repair','replace'"
PLAYBOOKS = "'restart','stop','repair','replace'"
RULES = (
    ("instances", "instances_wanted_action_check", "wanted_action IN ({actions})"),
    ("instances", "instances_flight_action_check", "flight_action IN ({actions})"),
    ("commands", "commands_action_check", "action IN ({actions})"),
    ("incidents", "incidents_playbook_check", "playbook IN ({playbooks})"),
    ("instances", "traffic_only_in_rotation", "({in_rotation}) = (weight > 0)"),
)
WIDER = {
    "actions": f"{ACTIONS},'roll_back'",
    "playbooks": f"{PLAYBOOKS},'roll_back'",
    "in_rotation": "state IN ('healthy','suspect') AND coalesce(weight_ceiling, 1) > 0",
}
FORMER = {
    "actions": ACTIONS,
    "playbooks": PLAYBOOKS,
    "in_rotation": "state IN ('healthy','suspect')",
}

HEALTH = """
    SELECT i.instance_id, i.pool, i.state, i.state_since,
        i.weight > 0 AS in_rotation, i.weight,
        round(greatest(0, 100 - i.penalty * power(2,
            -extract(epoch FROM now() - i.penalty_at)::double precision / p.half_life_s)
        )::numeric, 1) AS score,
        i.incarnation, i.life_id, i.running, i.base_url, i.model_version,
        c.incident_id, c.condition, c.status AS incident_status, c.cause AS incident_cause,
        i.flight_action AS command_in_flight, i.flight_due_at AS command_due_at,
        i.ticket_purpose AS probes_asked_for, i.due_at,
        cardinality(i.restarts) AS recent_restarts, p.paused, i.observed_at, i.probed_at,
        i.probe_from, i.shift_until, p.mode, c.would{more}
    FROM instances i JOIN pools p USING (pool)
    LEFT JOIN incidents c ON c.instance_id = i.instance_id AND c.status IN ('open','held')"""
POOLS = """
    SELECT p.pool, count(i.instance_id) AS instances,
        count(i.instance_id) FILTER (WHERE i.weight > 0) AS in_rotation,
        count(c.incident_id) FILTER (WHERE c.would = '') AS held_incidents,
        p.paused, p.braked_at IS NOT NULL AS braked, p.braked_at, p.brake_reason,
        p.brake_reset_at, p.brake_reset, p.routing_version, p.mode,
        count(c.incident_id) FILTER (WHERE c.would <> '') AS observed_incidents{more}
    FROM pools p
    LEFT JOIN instances i ON i.pool = p.pool AND i.base_url IS NOT NULL
    LEFT JOIN incidents c ON c.instance_id = i.instance_id AND c.status = 'held'
    GROUP BY p.pool"""


def rule(words: dict[str, str]) -> None:
    """Put constraints with these words in place of those that are there."""
    for table, name, text in RULES:
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({text.format(**words)})")


def upgrade() -> None:
    """Add columns, to the views too, and allow more words."""
    op.execute(
        "ALTER TABLE instances "
        "ADD COLUMN weight_ceiling double precision CHECK (weight_ceiling BETWEEN 0 AND 1), "
        "ADD COLUMN former_version text, ADD COLUMN version_since timestamptz, "
        "ADD COLUMN rolled_back_at timestamptz"
    )
    op.execute("ALTER TABLE pools ADD COLUMN suspect_version text NOT NULL DEFAULT ''")
    rule(WIDER)
    more = ", i.weight_ceiling, i.former_version, i.version_since"
    op.execute(f"CREATE OR REPLACE VIEW instance_health_v1 AS {HEALTH.format(more=more)}")
    more = ", p.suspect_version"
    op.execute(f"CREATE OR REPLACE VIEW pools_v1 AS {POOLS.format(more=more)}")


def downgrade() -> None:
    """Take them back; ceilings are lifted, and incidents of roll-backs become restarts."""
    for name, query in (("instance_health_v1", HEALTH), ("pools_v1", POOLS)):
        op.execute(f"DROP VIEW {name}")
        op.execute(f"CREATE VIEW {name} AS {query.format(more='')}")
    op.execute(
        "UPDATE instances SET weight = 0.1 WHERE weight_ceiling = 0 AND weight = 0 "
        "AND state IN ('healthy','suspect')"
    )
    op.execute("UPDATE incidents SET playbook = 'restart' WHERE playbook = 'roll_back'")
    op.execute("UPDATE commands SET action = 'restart' WHERE action = 'roll_back'")
    for name in ("wanted_action", "flight_action"):
        op.execute(f"UPDATE instances SET {name} = 'restart' WHERE {name} = 'roll_back'")  # noqa: S608
    rule(FORMER)
    op.execute("ALTER TABLE pools DROP COLUMN suspect_version")
    op.execute(
        "ALTER TABLE instances DROP COLUMN weight_ceiling, DROP COLUMN former_version, "
        "DROP COLUMN version_since, DROP COLUMN rolled_back_at"
    )
