"""One view that tells everything about an instance in the order in which it happened."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# Details are free: one that is no moment must not break the view for everybody.
MOMENT = """
    CREATE FUNCTION gatemesh_moment(words text) RETURNS timestamptz
    LANGUAGE plpgsql STABLE STRICT AS $$
    BEGIN
        RETURN words::timestamptz;
    EXCEPTION WHEN data_exception THEN
        RETURN NULL;
    END $$"""

TIMELINE = """
    CREATE VIEW timeline_v1 AS
    SELECT coalesce(gatemesh_moment(details ->> 'first_bad_token_at'), "timestamp") AS at,
        instance_id, incarnation, NULL::text AS incident_id, 'verdict' AS kind,
        check_level || ' ' || outcome || CASE WHEN hard THEN ' (hard)' ELSE '' END AS what,
        reason AS detail
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
    FROM command_reports r JOIN commands c USING (command_id)
"""


def upgrade() -> None:
    """Create the view; `env.py` lets the readers' role read it."""
    op.execute(MOMENT)
    op.execute(TIMELINE)


def downgrade() -> None:
    """Drop the view."""
    op.execute("DROP VIEW timeline_v1")
    op.execute("DROP FUNCTION gatemesh_moment")
