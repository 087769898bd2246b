"""The versioned views that people read."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

VIEWS = {
    "instance_health_v1": """
        SELECT i.instance_id, i.pool, i.state, i.state_since,
            i.weight > 0 AS in_rotation, i.weight,
            round(greatest(0, 100 - i.penalty * power(2,
                -extract(epoch FROM now() - i.penalty_at)::double precision / p.half_life_s)
            )::numeric, 1) AS score,
            i.incarnation, i.life_id, i.running, i.base_url, i.model_version,
            c.incident_id, c.condition, c.status AS incident_status, c.cause AS incident_cause,
            i.flight_action AS command_in_flight, i.flight_due_at AS command_due_at,
            i.ticket_purpose AS probes_asked_for, i.due_at,
            cardinality(i.restarts) AS recent_restarts, p.paused, i.observed_at
        FROM instances i JOIN pools p USING (pool)
        LEFT JOIN incidents c ON c.instance_id = i.instance_id AND c.status IN ('open','held')""",
    "incidents_v1": """
        SELECT incident_id, instance_id, pool, incarnation, condition, status, cause, reason,
            playbook, opened_at, ended_at,
            extract(epoch FROM coalesce(ended_at, now()) - opened_at)::double precision
                AS duration_s,
            policy_version
        FROM incidents""",
    "verdicts_v1": """
        SELECT id, "timestamp", instance_id, pool, incarnation, request_id, check_level, outcome,
            reason, hard, score, threshold, type, model_version, choice, tenant, decoding,
            gate_version, span, details, message_id, received_at
        FROM verdicts""",
    "commands_v1": """
        SELECT c.command_id, c.instance_id, c.pool, c.incarnation, c.action, c.fence, c.life_id,
            c.incident_id, c.status, coalesce(nullif(r.reason, ''), c.reason) AS reason,
            c.issued_at, c.available_at, c.due_at, c.ended_at,
            r.at AS reported_at, r.killed, r.duration_s, r.life_id AS life_afterwards,
            (SELECT coalesce(jsonb_agg(jsonb_build_object('step', s.step, 'at', s.at,
                    'duration_s', s.duration_s) ORDER BY s.at), '[]')
                FROM command_steps s WHERE s.command_id = c.command_id) AS steps
        FROM commands c LEFT JOIN LATERAL (
            SELECT * FROM command_reports r WHERE r.command_id = c.command_id
            ORDER BY r.at LIMIT 1) r ON true""",
    "transitions_v1": """
        SELECT id, at, instance_id, pool, incarnation, before_state, trigger, after_state,
            incident_id, score, policy_version
        FROM transitions""",
    "requests_v1": """
        SELECT message_id, requested_at, requested_by, action, pool, instance_id, reason, outcome,
            why, decided_at
        FROM requests""",
    "rejected_requests_v1": """
        SELECT message_id, at, request_id, instance_id, pool, incarnation, agent_id, cause,
            rerouted_to, rerouted_to IS NULL AS client_saw_error
        FROM rejected_requests""",
}


def upgrade() -> None:
    """Create the views; `env.py` lets the readers' role read them."""
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")


def downgrade() -> None:
    """Drop the views."""
    for name in reversed(VIEWS):
        op.execute(f"DROP VIEW {name}")
