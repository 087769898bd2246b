"""Pools, instances, verdicts, incidents, transitions, commands; inbox and outbox."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STATES = (
    "'starting','probation','healthy','suspect','draining','restarting',"
    "'replacing','ejected','quarantined','retired'"
)
ACTIONS = "'drain','eject','restart','readmit'"
LEVELS = "'L1','L2','L3','L4','L5'"

TABLES = (
    """
    CREATE TABLE policy_versions (
        version text PRIMARY KEY,
        body jsonb NOT NULL,
        first_used_at timestamptz NOT NULL
    )""",
    """
    CREATE TABLE pools (
        pool text PRIMARY KEY,
        routing_version bigint NOT NULL DEFAULT 0 CHECK (routing_version >= 0),
        paused boolean NOT NULL DEFAULT false,
        half_life_s double precision NOT NULL DEFAULT 300 CHECK (half_life_s > 0)
    )""",
    f"""
    CREATE TABLE instances (
        instance_id text PRIMARY KEY,
        pool text NOT NULL REFERENCES pools,
        state text NOT NULL CHECK (state IN ({STATES})),
        state_since timestamptz NOT NULL,
        incarnation integer NOT NULL CHECK (incarnation >= 0),
        life_id text,
        running boolean NOT NULL,
        base_url text,
        model_version text NOT NULL,
        observed_at timestamptz,
        evidence_since timestamptz,
        refuted_at timestamptz,
        penalty double precision NOT NULL CHECK (penalty >= 0),
        penalty_at timestamptz NOT NULL,
        fence bigint NOT NULL CHECK (fence >= 0),
        wanted_action text CHECK (wanted_action IN ({ACTIONS})),
        wanted_from timestamptz,
        target_life text,
        flight_command_id text,
        flight_action text CHECK (flight_action IN ({ACTIONS})),
        flight_due_at timestamptz,
        ticket_id text,
        ticket_purpose text CHECK (ticket_purpose IN ('confirm','probation')),
        due_at timestamptz,
        restarts timestamptz[] NOT NULL,
        weight double precision NOT NULL CHECK (weight BETWEEN 0 AND 1),
        CONSTRAINT traffic_only_in_rotation
            CHECK ((state IN ('healthy','suspect')) = (weight > 0)),
        CONSTRAINT only_known_lives_serve
            CHECK (weight = 0 OR (incarnation > 0 AND base_url IS NOT NULL)),
        CONSTRAINT flight_is_whole
            CHECK (num_nulls(flight_command_id, flight_action, flight_due_at) IN (0, 3)),
        CONSTRAINT ticket_is_whole CHECK (num_nulls(ticket_id, ticket_purpose) IN (0, 2)),
        CONSTRAINT tickets_where_probes_decide
            CHECK (ticket_id IS NULL OR state IN ('probation','ejected'))
    )""",
    f"""
    CREATE TABLE verdicts (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        message_id text NOT NULL,
        instance_id text NOT NULL,
        pool text NOT NULL,
        incarnation integer NOT NULL CHECK (incarnation >= 0),
        request_id text NOT NULL,
        check_level text NOT NULL CHECK (check_level IN ({LEVELS})),
        outcome text NOT NULL CHECK (outcome IN ('passed','failed','skipped')),
        reason text NOT NULL,
        hard boolean NOT NULL,
        score double precision,
        threshold double precision,
        type text NOT NULL,
        model_version text,
        choice integer NOT NULL,
        prompt_key text NOT NULL,
        tenant text,
        decoding text NOT NULL,
        gate_version text,
        span jsonb,
        details jsonb NOT NULL,
        "timestamp" timestamptz NOT NULL,
        counted_at timestamptz NOT NULL,
        received_at timestamptz NOT NULL
    )""",
    """
    CREATE INDEX verdicts_window ON verdicts (instance_id, incarnation, counted_at)
        WHERE outcome = 'failed'""",
    "CREATE INDEX verdicts_received ON verdicts USING brin (received_at)",
    """
    CREATE TABLE incidents (
        incident_id text PRIMARY KEY,
        instance_id text NOT NULL REFERENCES instances,
        pool text NOT NULL,
        incarnation integer NOT NULL CHECK (incarnation >= 0),
        condition text NOT NULL
            CHECK (condition IN ('A','B','exit','probes','overdue','operator')),
        status text NOT NULL
            CHECK (status IN ('open','held','resolved','quarantined','expired')),
        playbook text NOT NULL CHECK (playbook IN ('restart','stop')),
        cause text NOT NULL,
        reason text NOT NULL,
        policy_version text NOT NULL REFERENCES policy_versions,
        opened_at timestamptz NOT NULL,
        ended_at timestamptz,
        CONSTRAINT ended_when_over CHECK ((status IN ('open','held')) = (ended_at IS NULL))
    )""",
    """
    CREATE UNIQUE INDEX one_incident_at_a_time ON incidents (instance_id)
        WHERE status IN ('open','held')""",
    "CREATE INDEX incidents_opened ON incidents (opened_at)",
    f"""
    CREATE TABLE transitions (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        instance_id text NOT NULL REFERENCES instances,
        pool text NOT NULL,
        incarnation integer NOT NULL,
        before_state text NOT NULL CHECK (before_state IN ({STATES})),
        trigger text NOT NULL,
        after_state text NOT NULL CHECK (after_state IN ({STATES})),
        incident_id text,
        score double precision NOT NULL CHECK (score BETWEEN 0 AND 100),
        policy_version text NOT NULL REFERENCES policy_versions,
        at timestamptz NOT NULL,
        CONSTRAINT only_probes_and_clearance_lead_to_traffic CHECK (
            after_state <> 'healthy'
            OR (before_state, trigger) IN (('probation','probes_passed'), ('suspect','cleared')))
    )""",
    "CREATE INDEX transitions_by_instance ON transitions (instance_id, at)",
    "CREATE INDEX transitions_by_incident ON transitions (incident_id)",
    f"""
    CREATE TABLE commands (
        command_id text PRIMARY KEY,
        instance_id text NOT NULL REFERENCES instances,
        pool text NOT NULL,
        incarnation integer NOT NULL,
        action text NOT NULL CHECK (action IN ({ACTIONS})),
        fence bigint NOT NULL CHECK (fence >= 1),
        life_id text,
        incident_id text,
        status text NOT NULL
            CHECK (status IN ('in_flight','succeeded','failed','refused','expired')),
        reason text NOT NULL,
        issued_at timestamptz NOT NULL,
        available_at timestamptz NOT NULL,
        due_at timestamptz NOT NULL,
        ended_at timestamptz,
        CONSTRAINT fences_only_rise UNIQUE (instance_id, fence),
        CONSTRAINT ended_when_not_in_flight CHECK ((status = 'in_flight') = (ended_at IS NULL))
    )""",
    """
    CREATE UNIQUE INDEX one_command_in_flight ON commands (instance_id)
        WHERE status = 'in_flight'""",
    "CREATE INDEX commands_by_incident ON commands (incident_id)",
    """
    CREATE TABLE command_steps (
        message_id text PRIMARY KEY,
        command_id text NOT NULL,
        instance_id text NOT NULL,
        incident_id text,
        incarnation integer NOT NULL,
        step text NOT NULL,
        duration_s double precision NOT NULL,
        at timestamptz NOT NULL
    )""",
    "CREATE INDEX command_steps_by_command ON command_steps (command_id)",
    """
    CREATE TABLE command_reports (
        message_id text PRIMARY KEY,
        command_id text NOT NULL,
        instance_id text NOT NULL,
        outcome text NOT NULL CHECK (outcome IN ('succeeded','failed','refused')),
        reason text NOT NULL,
        life_id text,
        killed boolean NOT NULL,
        duration_s double precision NOT NULL,
        at timestamptz NOT NULL
    )""",
    "CREATE INDEX command_reports_by_command ON command_reports (command_id)",
    """
    CREATE TABLE requests (
        message_id text PRIMARY KEY,
        action text NOT NULL,
        pool text NOT NULL,
        instance_id text,
        requested_by text NOT NULL,
        reason text NOT NULL,
        requested_at timestamptz NOT NULL,
        outcome text NOT NULL CHECK (outcome IN ('accepted','refused')),
        why text NOT NULL,
        decided_at timestamptz NOT NULL,
        CONSTRAINT refusals_say_why CHECK (outcome = 'accepted' OR why <> '')
    )""",
    """
    CREATE TABLE rejected_requests (
        message_id text PRIMARY KEY,
        request_id text NOT NULL,
        instance_id text NOT NULL,
        pool text NOT NULL,
        incarnation integer,
        agent_id text NOT NULL,
        cause text NOT NULL,
        rerouted_to text,
        at timestamptz NOT NULL
    )""",
    "CREATE INDEX rejected_requests_by_instance ON rejected_requests (instance_id, at)",
    """
    CREATE TABLE telemetry_windows (
        message_id text PRIMARY KEY,
        agent_id text NOT NULL,
        instance_id text NOT NULL,
        pool text NOT NULL,
        incarnation integer NOT NULL,
        window_start timestamptz NOT NULL,
        window_end timestamptz NOT NULL,
        requests bigint NOT NULL,
        client_errors bigint NOT NULL,
        server_errors bigint NOT NULL,
        tokens bigint NOT NULL,
        unguarded bigint NOT NULL,
        in_flight bigint NOT NULL,
        gates jsonb NOT NULL
    )""",
    "CREATE INDEX telemetry_by_instance ON telemetry_windows (instance_id, window_end)",
    """
    CREATE TABLE inbox (
        queue text NOT NULL,
        message_id text NOT NULL,
        seen_at timestamptz NOT NULL,
        PRIMARY KEY (queue, message_id)
    )""",
    "CREATE INDEX ix_inbox_seen_at ON inbox (seen_at)",
    """
    CREATE TABLE outbox (
        id bigserial PRIMARY KEY,
        message_id text NOT NULL UNIQUE,
        exchange text NOT NULL,
        routing_key text NOT NULL,
        mandatory boolean NOT NULL,
        type text NOT NULL,
        headers jsonb NOT NULL,
        body text NOT NULL,
        created_at timestamptz NOT NULL,
        available_at timestamptz NOT NULL
    )""",
    "CREATE INDEX ix_outbox_available_at ON outbox (available_at)",
)

NAMES = (
    "outbox",
    "inbox",
    "telemetry_windows",
    "rejected_requests",
    "requests",
    "command_reports",
    "command_steps",
    "commands",
    "transitions",
    "incidents",
    "verdicts",
    "instances",
    "pools",
    "policy_versions",
)


def upgrade() -> None:
    """Create the tables."""
    for statement in TABLES:
        op.execute(statement)


def downgrade() -> None:
    """Drop the tables."""
    for name in NAMES:
        op.execute(f"DROP TABLE {name}")
