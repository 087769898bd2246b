"""A large fleet: 500 instances, 10,000 verdicts, with markup where it hurts."""

import json
from typing import LiteralString

import psycopg
from psycopg.types.json import Json

INSTANCES = 500
VERDICTS = 10_000
INCIDENTS = 200
HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&"
INCIDENT = "incident-0"
"""With markup in every text, verdicts, transitions and a command."""

FLEET: tuple[LiteralString, ...] = (
    """INSERT INTO policy_versions (version, body, first_used_at)
    VALUES ('v-old', '{"defaults": {"mode": "observe"}}', now() - interval '9 days'),
        ('v-1', jsonb_build_object('note', %(hostile)s::text), now() - interval '1 day')
    ON CONFLICT DO NOTHING""",
    """INSERT INTO pools (pool, paused, braked_at, brake_reason)
    VALUES ('chat', false, NULL, ''), ('code', true, now(), %(hostile)s::text)""",
    """INSERT INTO instances (instance_id, pool, state, state_since, incarnation, running, base_url,
        model_version, observed_at, penalty, penalty_at, fence, restarts, weight)
    SELECT 'engine-' || to_char(n, 'FM000'), CASE WHEN n %% 5 = 0 THEN 'code' ELSE 'chat' END,
        CASE WHEN n %% 50 = 7 THEN 'quarantined' WHEN n %% 50 = 9 THEN 'suspect' ELSE 'healthy' END,
        now() - make_interval(mins => n), 1 + n %% 3, true, 'http://127.0.0.1:1',
        CASE WHEN n = 3 THEN %(hostile)s ELSE 'model-1' END, now(), n %% 40, now(), 5, '{}',
        CASE WHEN n %% 50 = 7 THEN 0 ELSE 1 END
    FROM generate_series(0, %(instances)s - 1) AS n""",
    """INSERT INTO verdicts (message_id, instance_id, pool, incarnation, request_id, check_level,
        outcome, reason, hard, score, threshold, type, choice, prompt_key, decoding, gate_version,
        span, details, "timestamp", counted_at, received_at)
    SELECT 'verdict-' || n, 'engine-' || to_char(n %% %(instances)s, 'FM000'), 'chat', 1,
        CASE WHEN n < 5 THEN %(hostile)s ELSE 'request-' || n END, 'L' || 1 + n %% 5,
        'failed', CASE WHEN n < 5 THEN %(hostile)s ELSE 'repetition' END, n %% 7 = 0,
        0.93, 0.4, 'gate', 0, 'p' || n, 'sampled', '1', '{"char_start": 10, "char_end": 20}',
        jsonb_build_object('text', %(hostile)s::text), at, at, at
    FROM (SELECT n, now() - make_interval(secs => n * 0.36) AS at
        FROM generate_series(0, %(verdicts)s - 1) AS n) AS moments""",
    """INSERT INTO incidents (incident_id, instance_id, pool, incarnation, condition, status,
        playbook, cause, reason, policy_version, opened_at, ended_at, steps)
    SELECT 'incident-' || n, 'engine-' || to_char(n, 'FM000'), 'chat', 1,
        CASE WHEN n %% 2 = 0 THEN 'A' ELSE 'B' END,
        CASE WHEN n < 5 THEN 'open' ELSE 'resolved' END, 'restart',
        CASE WHEN n = 0 THEN %(hostile)s ELSE '6 failures of 6 prompts, last: repetition' END,
        CASE WHEN n = 0 THEN %(hostile)s ELSE 'repaired' END, 'v-1',
        now() - make_interval(mins => n), CASE WHEN n < 5 THEN NULL ELSE now() END,
        '{drain,restart}'
    FROM generate_series(0, %(incidents)s - 1) AS n""",
    """INSERT INTO transitions (instance_id, pool, incarnation, before_state, trigger, after_state,
        incident_id, score, policy_version, at)
    VALUES ('engine-000', 'chat', 1, 'healthy', %(hostile)s, 'draining', %(incident)s, 42,
        'v-1', now())""",
    """INSERT INTO commands (command_id, instance_id, pool, incarnation, action, fence,
        incident_id, status, reason, issued_at, available_at, due_at)
    VALUES ('command-0', 'engine-000', 'chat', 1, 'drain', 6, %(incident)s, 'in_flight',
        %(hostile)s, now(), now(), now() + interval '60 seconds')""",
    """INSERT INTO requests (message_id, requested_at, requested_by, action, pool, instance_id,
        reason, outcome, why, decided_at)
    SELECT gen_random_uuid()::text, now() - make_interval(mins => n), %(hostile)s, 'drain', 'chat',
        'engine-001', %(hostile)s, 'refused', %(hostile)s, now()
    FROM generate_series(0, 119) AS n""",
    """INSERT INTO telemetry_windows (message_id, window_start, window_end, pool, instance_id,
        incarnation, agent_id, requests, client_errors, server_errors, tokens, unguarded,
        in_flight, gates)
    SELECT 'window-' || n, now() - interval '10 seconds', now(), 'chat', 'engine-001', 1, 'agent-0',
        10, 0, 0, 1000, 0, 0, '{"L1": {"passed": 9, "failed": 1, "skipped": {}}}'
    FROM generate_series(0, 99) AS n""",
)


CAPTURED = "incident-1"
"""With two captures where the database keeps captures: a window, and two answers."""
CAPTURES: LiteralString = """
    INSERT INTO captures (message_id, at, source, agent_id, pool, instance_id, labels, request_id,
        choice, verdict_id, check_level, reason, hard, score, threshold, steps, steps_seen,
        chars_seen, gates, sampling, decoding, text_policy, texts, redactions, second_instance_id)
    VALUES ('capture-0', now(), 'agent', 'agent-0', 'chat', 'engine-001', '{}', %(hostile)s, 0,
        'verdict-1', 'L3', 'flat', true, 10.5, 10, %(steps)s, 40, 200, '{}', '{}', 'greedy',
        'window', %(window)s, '{}', NULL),
    ('capture-1', now(), 'shadow', 'shadow', 'chat', 'engine-001', '{}', 'request-501', 0,
        'verdict-2', 'L4', 'disagreement', false, 0.1, 0.5, '[]', 0, 0, '{}', '{}', 'greedy',
        'full', %(answers)s, '{}', 'engine-002')"""
WORDS = ("The", " capital", " of", " France", " is", " \ufffd", HOSTILE, " zq", " Paris", ".")
ENTROPIES = (0.2, 1.1, 2.4, 0.7, 0.1, 8.9, 10.4, 9.6, 3.5, 0.3)


TIDY: tuple[LiteralString, ...] = (
    "UPDATE pools SET brake_reason = '201 of 400 instances accused in 5 min' WHERE pool = 'code'",
    "UPDATE instances SET model_version = 'model-1'",
    "UPDATE incidents SET cause = 'hard L3 failure: flat', reason = 'confirming' "
    "WHERE status = 'open'",
)
"""For pictures of the documentation."""


def has_captures(connection: psycopg.Connection) -> bool:
    """True where the database keeps captures."""
    row = connection.execute("SELECT to_regclass('captures_v1') IS NOT NULL").fetchone()
    return bool(row and row[0])


def fill_captures(connection: psycopg.Connection) -> None:
    """Put two captures beside an incident."""
    steps = [
        {"n": 30 + place, "logprob": -entropy, "entropy": entropy, "fault": 5 <= place < 8}
        for place, entropy in enumerate(ENTROPIES)
    ]
    answers = {"prompt": HOSTILE, "answer": "Berlin " + HOSTILE, "second_answer": "Paris"}
    values = {
        "hostile": HOSTILE,
        "steps": Json(steps),
        "window": Json({"tokens": WORDS}),
        "answers": Json(answers),
    }
    connection.execute(CAPTURES, values)


def tidy_captures(connection: psycopg.Connection) -> bool:
    """Put words for people into the captures; True where there are any."""
    if not has_captures(connection):
        return False
    connection.execute(
        "UPDATE captures SET request_id = 'request-1', "
        "texts = replace(texts::text, %(hostile)s::text, ' xvb')::jsonb",
        {"hostile": json.dumps(HOSTILE)[1:-1]},
    )
    return True


def fill(database_url: str) -> None:
    """Put the fleet into a migrated database."""
    values = {
        "hostile": HOSTILE,
        "incident": INCIDENT,
        "instances": INSTANCES,
        "verdicts": VERDICTS,
        "incidents": INCIDENTS,
    }
    with psycopg.connect(database_url) as connection:
        for statement in FLEET:
            connection.execute(statement, values)
        if has_captures(connection):
            fill_captures(connection)


def run(database_url: str, statement: LiteralString, **values: object) -> None:
    """Change something while a test looks on."""
    with psycopg.connect(database_url) as connection:
        connection.execute(statement, values)
