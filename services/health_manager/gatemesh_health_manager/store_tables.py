"""The manager's tables as its statements need them; `migrations/` defines them."""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    Identity,
    Integer,
    MetaData,
    Numeric,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

METADATA = MetaData()


def _text(*names: str) -> list[Column[str]]:
    return [Column(name, Text) for name in names]


def _moment(*names: str) -> list[Column[object]]:
    return [Column(name, DateTime(timezone=True)) for name in names]


POLICY_VERSIONS = Table(
    "policy_versions",
    METADATA,
    Column("version", Text, primary_key=True),
    Column("body", JSONB),
    *_moment("first_used_at"),
)

POOLS = Table(
    "pools",
    METADATA,
    Column("pool", Text, primary_key=True),
    Column("routing_version", BigInteger),
    Column("paused", Boolean),
    Column("half_life_s", Float),
    Column("mode", Text),
    *_moment("braked_at", "brake_reset_at"),
    *_text("brake_reason", "brake_reset", "suspect_version"),
)

DECISION_INPUTS = Table(
    "decision_inputs",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    *_text("kind", "policy_version"),
    *_moment("at"),
    Column("pools", ARRAY(Text)),
    Column("body", JSONB),
    Column("seen", JSONB),
)

INSTANCES = Table(
    "instances",
    METADATA,
    Column("instance_id", Text, primary_key=True),
    *_text("pool", "state", "life_id", "base_url", "model_version", "target_life"),
    *_text("wanted_action", "flight_command_id", "flight_action", "ticket_id", "ticket_purpose"),
    *_moment("state_since", "observed_at", "evidence_since", "refuted_at", "penalty_at"),
    *_moment("wanted_from", "flight_due_at", "due_at", "repaired_at"),
    *_moment("ticket_until", "probed_at", "probe_from", "shift_until"),
    *_moment("readmitted_at", "accused_at", "version_since", "rolled_back_at"),
    *_text("former_version"),
    Column("closed_tickets", ARRAY(Text)),
    Column("streaks", JSONB),
    Column("incarnation", Integer),
    Column("running", Boolean),
    Column("penalty", Float),
    Column("fence", BigInteger),
    Column("restarts", ARRAY(DateTime(timezone=True))),
    Column("outs", ARRAY(DateTime(timezone=True))),
    Column("weight", Float),
    Column("weight_ceiling", Float),
)

INCIDENTS = Table(
    "incidents",
    METADATA,
    Column("incident_id", Text, primary_key=True),
    *_text("instance_id", "pool", "condition", "status", "playbook", "cause", "reason"),
    *_text("policy_version", "would", "core_dump", "traceparent"),
    *_moment("opened_at", "ended_at"),
    Column("incarnation", Integer),
    Column("steps", ARRAY(Text)),
)

TRANSITIONS = Table(
    "transitions",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    *_text("instance_id", "pool", "before_state", "trigger", "after_state", "incident_id"),
    *_text("policy_version"),
    *_moment("at"),
    Column("incarnation", Integer),
    Column("score", Float),
)

COMMANDS = Table(
    "commands",
    METADATA,
    Column("command_id", Text, primary_key=True),
    *_text("instance_id", "pool", "action", "life_id", "incident_id", "status", "reason"),
    *_moment("issued_at", "available_at", "due_at", "ended_at"),
    Column("incarnation", Integer),
    Column("fence", BigInteger),
)

COMMAND_STEPS = Table(
    "command_steps",
    METADATA,
    Column("message_id", Text, primary_key=True),
    *_text("command_id", "instance_id", "incident_id", "step"),
    *_moment("at"),
    Column("incarnation", Integer),
    Column("duration_s", Float),
)

COMMAND_REPORTS = Table(
    "command_reports",
    METADATA,
    Column("message_id", Text, primary_key=True),
    *_text("command_id", "instance_id", "outcome", "reason", "life_id"),
    *_moment("at"),
    Column("killed", Boolean),
    Column("duration_s", Float),
)

REFUSED_COMMANDS = Table(
    "refused_commands",
    METADATA,
    Column("message_id", Text, primary_key=True),
    *_text("command_id", "instance_id", "pool", "action", "reason", "detail"),
    *_moment("at", "received_at"),
    Column("incarnation", Numeric),
    Column("fence", Numeric),
    Column("ends_command", Boolean),
)

REQUESTS = Table(
    "requests",
    METADATA,
    Column("message_id", Text, primary_key=True),
    *_text("action", "pool", "instance_id", "requested_by", "reason", "outcome", "why"),
    *_text("user_id"),
    *_moment("requested_at", "decided_at"),
    Column("dry_run", Boolean),
)

REJECTED_REQUESTS = Table(
    "rejected_requests",
    METADATA,
    Column("message_id", Text, primary_key=True),
    *_text("request_id", "instance_id", "pool", "agent_id", "cause", "rerouted_to"),
    *_moment("at"),
    Column("incarnation", Integer),
)

TELEMETRY_WINDOWS = Table(
    "telemetry_windows",
    METADATA,
    Column("message_id", Text, primary_key=True),
    *_text("agent_id", "instance_id", "pool"),
    *_moment("window_start", "window_end"),
    Column("incarnation", Integer),
    *[
        Column(name, BigInteger)
        for name in (
            "requests",
            "client_errors",
            "server_errors",
            "tokens",
            "unguarded",
            "in_flight",
        )
    ],
    Column("gates", JSONB),
    Column("sketches", JSONB(none_as_null=True)),
    Column("first_tokens", JSONB(none_as_null=True)),
)

BASELINE_SKETCHES = Table(
    "baseline_sketches",
    METADATA,
    *[
        Column(name, Text, primary_key=True)
        for name in ("pool", "model_version", "instance_id", "metric", "decoding", "script")
    ],
    Column("width", Float),
    Column("count", Float),
    Column("bins", JSONB),
    *_moment("updated_at"),
)

BASELINES = Table(
    "baselines",
    METADATA,
    Column("pool", Text, primary_key=True),
    Column("model_version", Text, primary_key=True),
    Column("version", BigInteger),
    Column("shadow_share", Float),
    Column("entries", JSONB),
    *_moment("changed_at"),
)
