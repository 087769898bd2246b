"""The timeline by the moment things came to be known, which is indexed."""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

WOULD = "cause || CASE WHEN would <> '' THEN ' (only observed, would: ' || would || ')' ELSE '' END"
EVENTS = """
    SELECT {arrived}
        coalesce(gatemesh_moment(details ->> 'first_bad_token_at'), "timestamp") AS at, instance_id,
        incarnation, NULL::text AS incident_id, 'verdict' AS kind,
        check_level || ' ' || outcome || CASE WHEN hard THEN ' (hard)' ELSE '' END AS what,
        reason || CASE WHEN attribution = 'request' THEN ' (the request''s)' ELSE '' END
            AS detail
    FROM verdicts WHERE outcome = 'failed' OR check_level = 'L5'
    UNION ALL
    SELECT {opened}opened_at, instance_id, incarnation, incident_id, 'incident',
        'opened, condition ' || condition, {would}
    FROM incidents
    UNION ALL
    SELECT {ended}ended_at, instance_id, incarnation, incident_id, 'incident', status, reason
    FROM incidents WHERE ended_at IS NOT NULL
    UNION ALL
    SELECT {at}at, instance_id, incarnation, incident_id, 'state',
        before_state || ' -> ' || after_state, trigger
    FROM transitions
    UNION ALL
    SELECT {issued}issued_at, instance_id, incarnation, incident_id, 'command', action,
        'fence ' || fence
    FROM commands
    UNION ALL
    SELECT {step}s.at, s.instance_id, s.incarnation, s.incident_id, 'step',
        c.action || ': ' || s.step, round(s.duration_s::numeric, 2) || ' s'
    FROM command_steps s JOIN commands c USING (command_id)
    UNION ALL
    SELECT {report}r.at, r.instance_id, c.incarnation, c.incident_id, 'report',
        c.action || ' ' || r.outcome,
        concat_ws(', ', nullif(r.reason, ''), CASE WHEN r.killed THEN 'killed' END)
    FROM command_reports r JOIN commands c USING (command_id)"""
MOMENTS = {
    "arrived": "received_at AS arrived_at,",
    "opened": "opened_at, ",
    "ended": "ended_at, ",
    "at": "at, ",
    "issued": "issued_at, ",
    "step": "s.at, ",
    "report": "r.at, ",
}
ARRIVALS = EVENTS.format(would=WOULD, **MOMENTS)
BEFORE = EVENTS.format(would=WOULD, **dict.fromkeys(MOMENTS, ""))
AFTER = "SELECT at, instance_id, incarnation, incident_id, kind, what, detail FROM arrivals_v1"


def upgrade() -> None:
    """Create the view, and make the timeline of it; `env.py` lets the readers' role read it."""
    op.execute(f"CREATE VIEW arrivals_v1 AS {ARRIVALS}")
    op.execute(f"CREATE OR REPLACE VIEW timeline_v1 AS {AFTER}")


def downgrade() -> None:
    """Make the timeline stand by itself again, and drop the view."""
    op.execute(f"CREATE OR REPLACE VIEW timeline_v1 AS {BEFORE}")
    op.execute("DROP VIEW arrivals_v1")
