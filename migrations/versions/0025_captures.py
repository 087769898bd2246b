"""Captures: windows around faults, in one partition a day; figures and text in views of their own.

Managers make the days; until one has started, rows lie in the part for all others.
"""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

TABLE = """
    CREATE TABLE captures (
        message_id text NOT NULL,
        at timestamptz NOT NULL,
        received_at timestamptz NOT NULL DEFAULT now(),
        source text NOT NULL,
        agent_id text NOT NULL,
        pool text NOT NULL,
        instance_id text NOT NULL,
        incarnation integer,
        model text,
        model_version text,
        engine_version text,
        labels jsonb NOT NULL,
        request_id text NOT NULL,
        choice integer NOT NULL,
        traceparent text,
        verdict_id text NOT NULL,
        check_level text NOT NULL,
        reason text NOT NULL,
        hard boolean NOT NULL,
        score double precision,
        threshold double precision,
        gate_version text,
        span jsonb,
        steps jsonb NOT NULL,
        fault_from integer,
        fault_until integer,
        steps_seen integer NOT NULL,
        chars_seen integer NOT NULL,
        gates jsonb NOT NULL,
        sampling jsonb NOT NULL,
        decoding text NOT NULL,
        finish_reason text,
        text_policy text NOT NULL CHECK (text_policy IN ('none', 'window', 'full')),
        text_withheld text,
        texts jsonb,
        redactions jsonb NOT NULL,
        second_instance_id text,
        PRIMARY KEY (message_id, received_at),
        CHECK (texts IS NULL OR text_policy <> 'none')
    ) PARTITION BY RANGE (received_at)"""

FIGURES = """
    CREATE VIEW captures_v1 AS
    SELECT c.message_id AS capture_id, c.at, c.received_at, c.source, c.agent_id, c.pool,
        c.instance_id, c.incarnation, c.model, c.model_version, c.engine_version, c.labels,
        c.request_id, c.choice, c.traceparent, c.check_level, c.reason, c.hard, c.score,
        c.threshold, c.gate_version, c.span, c.steps, c.fault_from, c.fault_until, c.steps_seen,
        c.chars_seen, c.gates, c.sampling, c.decoding, c.finish_reason, c.text_policy,
        c.texts IS NOT NULL AS has_text, c.redactions, c.text_withheld, c.second_instance_id,
        c.verdict_id, v.attribution, i.incident_id, i.condition, i.status AS incident_status
    FROM captures c
    LEFT JOIN LATERAL (
        SELECT v.attribution FROM verdicts v
        WHERE v.instance_id = c.instance_id AND v.outcome = 'failed'
            AND v.message_id = c.verdict_id
            AND v.received_at >= c.received_at - interval '1 day'
            AND v.received_at < c.received_at + interval '1 day'
        LIMIT 1) v ON true
    LEFT JOIN LATERAL (
        SELECT i.incident_id, i.condition, i.status FROM incidents i
        WHERE i.instance_id = c.instance_id
            AND (c.incarnation IS NULL OR i.incarnation = c.incarnation)
            AND i.opened_at <= c.at + interval '10 minutes'
            AND (i.ended_at IS NULL OR i.ended_at >= c.at)
        ORDER BY abs(extract(epoch FROM i.opened_at - c.at)) LIMIT 1) i ON true"""

TEXTS = """
    CREATE VIEW capture_texts_v1 AS
    SELECT message_id AS capture_id, at, received_at, pool, instance_id, request_id, text_policy,
        redactions, texts -> 'tokens' AS tokens, texts ->> 'prompt' AS prompt,
        texts ->> 'answer' AS answer, texts ->> 'second_answer' AS second_answer,
        coalesce((texts ->> 'is_cut')::boolean, false) AS is_cut
    FROM captures WHERE texts IS NOT NULL"""

STATEMENTS = (
    TABLE,
    "CREATE TABLE captures_other PARTITION OF captures DEFAULT",
    "CREATE INDEX captures_instance ON captures (instance_id, at)",
    FIGURES,
    TEXTS,
)


def upgrade() -> None:
    """Create the table and the views; `env.py` says who may read which."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Drop them, with every day."""
    op.execute("DROP VIEW capture_texts_v1")
    op.execute("DROP VIEW captures_v1")
    op.execute("DROP TABLE captures")
