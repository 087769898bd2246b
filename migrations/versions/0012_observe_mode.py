"""Observe mode: the mode of each pool, and what would be done about an incident."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

COLUMNS = (
    """
    ALTER TABLE pools ADD COLUMN mode text NOT NULL DEFAULT 'act'
        CONSTRAINT pools_mode_check CHECK (mode IN ('observe','act'))""",
    "ALTER TABLE incidents ADD COLUMN would text NOT NULL DEFAULT ''",
)

TO_TRAFFIC = """
    after_state <> 'healthy'
    OR (before_state, trigger) IN (('probation','probes_passed'), ('suspect','cleared'){more})"""

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
        cardinality(i.restarts) AS recent_restarts, p.paused, i.observed_at,
        i.probed_at, i.probe_from, i.shift_until{more}
    FROM instances i JOIN pools p USING (pool)
    LEFT JOIN incidents c ON c.instance_id = i.instance_id AND c.status IN ('open','held')"""

INCIDENTS = """
    SELECT incident_id, instance_id, pool, incarnation, condition, status, cause, reason,
        playbook, opened_at, ended_at,
        extract(epoch FROM coalesce(ended_at, now()) - opened_at)::double precision
            AS duration_s,
        policy_version{more}
    FROM incidents"""

POOLS = """
    SELECT p.pool, count(i.instance_id) AS instances,
        count(i.instance_id) FILTER (WHERE i.weight > 0) AS in_rotation,
        count(c.incident_id){held} AS held_incidents,
        p.paused, p.braked_at IS NOT NULL AS braked, p.braked_at, p.brake_reason,
        p.brake_reset_at, p.brake_reset, p.routing_version{more}
    FROM pools p
    LEFT JOIN instances i ON i.pool = p.pool AND i.base_url IS NOT NULL
    LEFT JOIN incidents c ON c.instance_id = i.instance_id AND c.status = 'held'
    GROUP BY p.pool"""

TIMELINE = """
    SELECT coalesce(gatemesh_moment(details ->> 'first_bad_token_at'), "timestamp") AS at,
        instance_id, incarnation, NULL::text AS incident_id, 'verdict' AS kind,
        check_level || ' ' || outcome || CASE WHEN hard THEN ' (hard)' ELSE '' END AS what,
        reason || CASE WHEN attribution = 'request' THEN ' (the request''s)' ELSE '' END
            AS detail
    FROM verdicts WHERE outcome = 'failed' OR check_level = 'L5'
    UNION ALL
    SELECT opened_at, instance_id, incarnation, incident_id, 'incident',
        'opened, condition ' || condition, {opened}
    FROM incidents
    UNION ALL
    SELECT ended_at, instance_id, incarnation, incident_id, 'incident', status, reason
    FROM incidents WHERE ended_at IS NOT NULL
    UNION ALL
    SELECT at, instance_id, incarnation, incident_id, 'state',
        before_state || ' -> ' || after_state, trigger
    FROM transitions
    UNION ALL
    SELECT issued_at, instance_id, incarnation, incident_id, 'command', action, 'fence ' || fence
    FROM commands
    UNION ALL
    SELECT s.at, s.instance_id, s.incarnation, s.incident_id, 'step', c.action || ': ' || s.step,
        round(s.duration_s::numeric, 2) || ' s'
    FROM command_steps s JOIN commands c USING (command_id)
    UNION ALL
    SELECT r.at, r.instance_id, c.incarnation, c.incident_id, 'report',
        c.action || ' ' || r.outcome,
        concat_ws(', ', nullif(r.reason, ''), CASE WHEN r.killed THEN 'killed' END)
    FROM command_reports r JOIN commands c USING (command_id)"""

WOULD = "cause || CASE WHEN would <> '' THEN ' (only observed, would: ' || would || ')' ELSE '' END"
MODE = "CASE WHEN would = '' THEN 'act' ELSE 'observe' END AS mode"
OBSERVED = "count(c.incident_id) FILTER (WHERE c.would <> '') AS observed_incidents"

NEW = {
    "instance_health_v1": HEALTH.format(more=", p.mode, c.would"),
    "incidents_v1": INCIDENTS.format(more=f", {MODE}, would"),
    "pools_v1": POOLS.format(held=" FILTER (WHERE c.would = '')", more=f", p.mode, {OBSERVED}"),
    "timeline_v1": TIMELINE.format(opened=WOULD),
}
OLD = {
    "instance_health_v1": HEALTH.format(more=""),
    "incidents_v1": INCIDENTS.format(more=""),
    "pools_v1": POOLS.format(held="", more=""),
    "timeline_v1": TIMELINE.format(opened="cause"),
}
RULE = "only_probes_and_clearance_lead_to_traffic"


def upgrade() -> None:
    """Add the columns, to the views too; let instances of an observed pool serve unproven."""
    for statement in COLUMNS:
        op.execute(statement)
    op.execute(f"ALTER TABLE transitions DROP CONSTRAINT {RULE}")
    wider = TO_TRAFFIC.format(more=", ('probation','let_through')")
    op.execute(f"ALTER TABLE transitions ADD CONSTRAINT {RULE} CHECK ({wider})")
    for name, query in NEW.items():
        op.execute(f"CREATE OR REPLACE VIEW {name} AS {query}")


def downgrade() -> None:
    """Take them back; incidents that were only observed stay, and say so no more."""
    for name in OLD:
        op.execute(f"DROP VIEW {name}")
    op.execute("ALTER TABLE pools DROP COLUMN mode")
    op.execute("ALTER TABLE incidents DROP COLUMN would")
    op.execute(f"ALTER TABLE transitions DROP CONSTRAINT {RULE}")
    narrower = TO_TRAFFIC.format(more="")
    op.execute(f"ALTER TABLE transitions ADD CONSTRAINT {RULE} CHECK ({narrower}) NOT VALID")
    for name, query in OLD.items():
        op.execute(f"CREATE VIEW {name} AS {query}")
