"""Conditions C and D, repair and replace, attribution, and probes of serving instances."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

ACTIONS = "'drain','eject','restart','readmit','repair','replace'"
LEVELS = "'L1','L2','L3','L4','L5','LX'"
CONDITIONS = "'A','B','C','D','exit','probes','overdue','operator'"
PLAYBOOKS = "'restart','stop','repair','replace'"
PURPOSES = "'confirm','probation','routine','suspicion'"

# Each new rule allows all that the old one did.
WIDENED = (
    ("instances", "instances_wanted_action_check", f"wanted_action IN ({ACTIONS})"),
    ("instances", "instances_flight_action_check", f"flight_action IN ({ACTIONS})"),
    ("instances", "instances_ticket_purpose_check", f"ticket_purpose IN ({PURPOSES})"),
    (
        "instances",
        "tickets_where_probes_decide",
        "ticket_id IS NULL OR state IN ('probation','ejected','healthy','suspect')",
    ),
    ("commands", "commands_action_check", f"action IN ({ACTIONS})"),
    ("verdicts", "verdicts_check_level_check", f"check_level IN ({LEVELS})"),
    ("incidents", "incidents_condition_check", f"condition IN ({CONDITIONS})"),
    ("incidents", "incidents_playbook_check", f"playbook IN ({PLAYBOOKS})"),
)
NARROWER = (
    (
        "instances",
        "instances_wanted_action_check",
        "wanted_action IN ('drain','eject','restart','readmit')",
    ),
    (
        "instances",
        "instances_flight_action_check",
        "flight_action IN ('drain','eject','restart','readmit')",
    ),
    (
        "instances",
        "instances_ticket_purpose_check",
        "ticket_purpose IN ('confirm','probation')",
    ),
    (
        "instances",
        "tickets_where_probes_decide",
        "ticket_id IS NULL OR state IN ('probation','ejected')",
    ),
    ("commands", "commands_action_check", "action IN ('drain','eject','restart','readmit')"),
    ("verdicts", "verdicts_check_level_check", "check_level IN ('L1','L2','L3','L4','L5')"),
    (
        "incidents",
        "incidents_condition_check",
        "condition IN ('A','B','exit','probes','overdue','operator')",
    ),
    ("incidents", "incidents_playbook_check", "playbook IN ('restart','stop')"),
)

COLUMNS = (
    "ALTER TABLE verdicts ADD COLUMN attribution text NOT NULL DEFAULT 'unknown'",
    """
    ALTER TABLE verdicts ADD CONSTRAINT verdicts_attribution_check
        CHECK (attribution IN ('instance','request','unknown'))""",
    """
    CREATE INDEX verdicts_copies
        ON verdicts (instance_id, incarnation, prompt_key, check_level, counted_at)
        WHERE outcome = 'failed' AND attribution <> 'request'""",
    """
    ALTER TABLE instances
        ADD COLUMN streaks jsonb NOT NULL DEFAULT '{}',
        ADD COLUMN closed_tickets text[] NOT NULL DEFAULT '{}',
        ADD COLUMN ticket_until timestamptz,
        ADD COLUMN probed_at timestamptz,
        ADD COLUMN probe_from timestamptz,
        ADD COLUMN shift_until timestamptz,
        ADD COLUMN repaired_at timestamptz""",
)

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
        cardinality(i.restarts) AS recent_restarts, p.paused, i.observed_at{more}
    FROM instances i JOIN pools p USING (pool)
    LEFT JOIN incidents c ON c.instance_id = i.instance_id AND c.status IN ('open','held')"""

VERDICTS = """
    SELECT id, "timestamp", instance_id, pool, incarnation, request_id, check_level, outcome,
        reason, hard, score, threshold, type, model_version, choice, tenant, decoding,
        gate_version, span, details, message_id, received_at{more}
    FROM verdicts"""

TIMELINE = """
    SELECT coalesce(gatemesh_moment(details ->> 'first_bad_token_at'), "timestamp") AS at,
        instance_id, incarnation, NULL::text AS incident_id, 'verdict' AS kind,
        check_level || ' ' || outcome || CASE WHEN hard THEN ' (hard)' ELSE '' END AS what,
        {reason} AS detail
    FROM verdicts WHERE outcome = 'failed' OR check_level = 'L5'
    UNION ALL
    SELECT opened_at, instance_id, incarnation, incident_id, 'incident',
        'opened, condition ' || condition, cause
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

ATTRIBUTED = "reason || CASE WHEN attribution = 'request' THEN ' (the request''s)' ELSE '' END"


def upgrade() -> None:
    """Allow more words, add columns with defaults, append columns to views."""
    for table, name, rule in WIDENED:
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({rule})")
    for statement in COLUMNS:
        op.execute(statement)
    views = {
        "instance_health_v1": HEALTH.format(more=", i.probed_at, i.probe_from, i.shift_until"),
        "verdicts_v1": VERDICTS.format(more=", attribution"),
        "timeline_v1": TIMELINE.format(reason=ATTRIBUTED),
    }
    for name, query in views.items():
        op.execute(f"CREATE OR REPLACE VIEW {name} AS {query}")


def downgrade() -> None:
    """Take it back; rows that use the new words stay and are not checked."""
    views = {
        "timeline_v1": TIMELINE.format(reason="reason"),
        "verdicts_v1": VERDICTS.format(more=""),
        "instance_health_v1": HEALTH.format(more=""),
    }
    for name in views:
        op.execute(f"DROP VIEW {name}")
    op.execute("DROP INDEX verdicts_copies")
    op.execute("ALTER TABLE verdicts DROP COLUMN attribution")
    op.execute(
        "ALTER TABLE instances DROP COLUMN streaks, DROP COLUMN closed_tickets, "
        "DROP COLUMN ticket_until, DROP COLUMN probed_at, DROP COLUMN probe_from, "
        "DROP COLUMN shift_until, DROP COLUMN repaired_at"
    )
    for table, name, rule in NARROWER:
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({rule}) NOT VALID")
    for name, query in views.items():
        op.execute(f"CREATE VIEW {name} AS {query}")
