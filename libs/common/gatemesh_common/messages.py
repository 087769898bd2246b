"""Every class that crosses the broker: frozen, versioned by key, tolerant of newer fields."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from gatemesh_common.captures import Capture, CaptureStep, CaptureTerms, CaptureTexts
from gatemesh_common.commands import (
    COMMAND,
    AnyCommand,
    Command,
    DrainInstance,
    EjectInstance,
    InstanceCommand,
    ReadmitInstance,
    RepairInstance,
    ReplaceInstance,
    RestartInstance,
    RollBackInstance,
)
from gatemesh_common.delays import LAST_BIN
from gatemesh_common.exchanges import ALERTS, CONTROL, DEAD, EVENTS, SHADOW
from gatemesh_common.ids import derived_id, key_segment, new_message_id
from gatemesh_common.message import (
    BUCKET_HEADER,
    LANE_HEADER,
    PROOF_LANE,
    HandmadeMessage,
    InstanceMessage,
    Message,
    Span,
    bucket_of,
)
from gatemesh_common.reasons import Reason
from gatemesh_common.samples import Baseline, BaselineEntry, ShadowSample, Sketch
from gatemesh_common.words import (
    Action,
    Attribution,
    CheckLevel,
    Decoding,
    Identifier,
    InstanceState,
    Outcome,
    ReportOutcome,
    RequestedAction,
    Share,
    StepName,
    UtcDatetime,
)

# Whoever reads a message needs its words: they are handed on from here.
__all__ = [
    "ALERTS",
    "COMMAND",
    "CONTROL",
    "DEAD",
    "EVENTS",
    "MESSAGES",
    "SHADOW",
    "Action",
    "ActionRequest",
    "AnyCommand",
    "Attribution",
    "Baseline",
    "BaselineEntry",
    "Capture",
    "CaptureStep",
    "CaptureTerms",
    "CaptureTexts",
    "CheckLevel",
    "Command",
    "CommandReport",
    "Decoding",
    "DrainInstance",
    "EjectInstance",
    "FleetBrakeChanged",
    "GateCounts",
    "HandmadeMessage",
    "Identifier",
    "IncidentChanged",
    "InstanceCommand",
    "InstanceMessage",
    "InstanceObserved",
    "InstanceState",
    "Message",
    "Outcome",
    "ProbeTicket",
    "ReadmitInstance",
    "Reason",
    "RepairInstance",
    "ReplaceInstance",
    "ReportOutcome",
    "RequestRejected",
    "RequestedAction",
    "RestartInstance",
    "RollBackInstance",
    "RoutedInstance",
    "RoutingApplied",
    "RoutingTable",
    "ShadowSample",
    "Share",
    "Sketch",
    "Span",
    "StateChanged",
    "StepFinished",
    "StepName",
    "TelemetryWindow",
    "TrialRequest",
    "UtcDatetime",
    "Verdict",
    "derived_id",
    "key_segment",
    "new_message_id",
]


TEXT_OR_OBJECT = {"anyOf": [{"type": "object"}, {"type": "string"}]}


class Verdict(HandmadeMessage):
    """One gate's judgement of one response (event, published by the agent and by people).

    A minimal object with only `instance_id`, `request_id`, `timestamp`, `check_level`, `details`
    and `type` is valid: it reports a soft failure of the instance's present life.
    """

    exchange = ALERTS
    routing_key = "verdict.v1"

    instance_id: Identifier
    request_id: Identifier
    check_level: CheckLevel
    type: str = Field(default="verdict", max_length=200)
    """Free word of the publisher; kept and shown, never interpreted."""
    pool: Identifier | None = None
    """Unknown to people who publish by hand; the manager looks it up."""
    incarnation: int | None = Field(default=None, ge=0)
    """Which life of the instance was judged; absent means the present one."""
    model_version: str | None = Field(default=None, max_length=200)
    choice: int = Field(default=0, ge=0)
    outcome: Outcome = Outcome.FAILED
    reason: Reason = Reason.REPORTED
    hard: bool = False
    """True when the failure is proof and not only evidence."""
    score: float | None = None
    """In the gate's own unit: share or count (L1), nats (L2, L3), share of probes (L5)."""
    threshold: float | None = None
    span: Span | None = None
    gate_version: str | None = Field(default=None, max_length=50)
    prompt_fingerprint: str | None = Field(default=None, max_length=128)
    """Keyed hash of the prompt; the prompt itself never travels."""
    tenant: str | None = Field(default=None, max_length=128)
    decoding: Decoding = Decoding.UNKNOWN
    attribution: Attribution = Attribution.UNKNOWN
    """Whose fault it is; a failure that is the request's does not count against the instance."""
    details: Annotated[dict[str, Any], WithJsonSchema(TEXT_OR_OBJECT)] = Field(default_factory=dict)
    """Free text of a publisher by hand becomes `{"text": ...}`."""

    @property
    def is_proof(self) -> bool:
        """True where this one verdict takes an instance out."""
        return self.hard and self.outcome is Outcome.FAILED

    def placing(self) -> Mapping[str, str]:
        """Return the lane of a proof, else the bucket of the instance: its verdicts keep order.

        Not both: the broker would lead the message to the proofs and to a shard.
        """
        if self.is_proof:
            return {LANE_HEADER: PROOF_LANE}
        return {BUCKET_HEADER: str(bucket_of(self.instance_id))}

    def key_words(self) -> tuple[str, ...]:
        """Return gate, pool and instance."""
        return (self.check_level.lower(), self.pool or "default", self.instance_id)


POOL_REQUESTS = frozenset({"pause", "resume", "reset_brake", "roll_back"})
"""Actions that may be asked for without an instance."""


class ActionRequest(HandmadeMessage):
    """An operator asks the manager for an action on one instance, or on a whole pool."""

    exchange = CONTROL
    routing_key = "request.v1"
    names_sender = True

    action: RequestedAction
    pool: Identifier = "default"
    instance_id: Identifier | None = None
    requested_by: Identifier
    reason: str = Field(default="", max_length=500)
    backlog: Literal["skip", "replay"] | None = None
    """With `reset_brake`: whether what the brake held counts for nothing, or is acted on."""
    weight: Share | None = None
    """With `set_weight`: the most routing weight that the instance gets; 1 lifts the ceiling."""
    model_version: str | None = Field(default=None, min_length=1, max_length=200)
    """With `roll_back` of a pool: the version to leave; absent, the one that came last."""

    @model_validator(mode="after")
    def name_an_instance(self) -> "ActionRequest":
        """Refuse a request about an instance that names none."""
        if self.instance_id is None and self.action not in POOL_REQUESTS:
            raise ValueError(f"instance_id: required for action {self.action!r}")
        return self

    @model_validator(mode="after")
    def weigh_with_a_weight(self) -> "ActionRequest":
        """Refuse a ceiling without its height, and a height without a ceiling."""
        if (self.action == "set_weight") is (self.weight is None):
            raise ValueError("weight: goes with action 'set_weight', and only with that")
        return self

    @model_validator(mode="after")
    def leave_a_version_with_a_pool(self) -> "ActionRequest":
        """Refuse a model version where none is to be left, or where one instance is named."""
        whole = self.action == "roll_back" and self.instance_id is None
        if self.model_version is not None and not whole:
            raise ValueError("model_version: goes with action 'roll_back' of a whole pool")
        return self

    @model_validator(mode="after")
    def choose_for_the_backlog(self) -> "ActionRequest":
        """Refuse to reset the brake of one instance, or without a choice."""
        if self.action == "reset_brake" and self.backlog is None:
            raise ValueError("backlog: skip or replay is required for action 'reset_brake'")
        if self.action == "reset_brake" and self.instance_id is not None:
            raise ValueError("instance_id: the fleet brake is the pool's")
        return self

    def key_words(self) -> tuple[str, ...]:
        """Return action and pool."""
        return (self.action, self.pool)


class TrialRequest(ActionRequest):
    """An operator asks what a request would do; nothing is done.

    A class and key of its own: a manager that knows no trials must not carry one out.
    """

    routing_key = "trial.v1"


class CommandReport(InstanceMessage):
    """A command ended, and how (event, published by the executor)."""

    exchange = EVENTS
    routing_key = "report.v1"

    command_id: str
    action: Action
    incarnation: int = Field(ge=0)
    fence: int = Field(ge=1)
    incident_id: str | None = None
    outcome: ReportOutcome
    reason: str = Field(default="", max_length=500)
    life_id: str | None = Field(default=None, max_length=200)
    """The life that runs now, if any."""
    highest_fence: int | None = Field(default=None, ge=1)
    """The highest fence that the executor has obeyed for the instance; told with a refusal."""
    ends_command: bool = True
    """False when only a forgery or a copy was refused: the command of this id goes on as it was."""
    killed: bool = False
    """True when running requests outlasted the grace and the process group was killed."""
    core_dump: str = Field(default="", max_length=1000)
    """The folder on the executor's machine with the core dump that was taken, if any."""
    duration_s: float = Field(default=0.0, ge=0)


class StepFinished(InstanceMessage):
    """One step of a command is done (event, published by the executor)."""

    exchange = EVENTS
    routing_key = "step.v1"

    command_id: str
    incident_id: str | None = None
    incarnation: int = Field(ge=0)
    step: StepName
    duration_s: float = Field(default=0.0, ge=0)


class InstanceObserved(InstanceMessage):
    """What the executor sees of one instance, on every change and again every few seconds."""

    exchange = EVENTS
    routing_key = "observed.v1"

    running: bool
    life_id: str | None = Field(default=None, max_length=200)
    """The backend's name of the running life, such as pid and start time; absent when stopped."""
    base_url: str = Field(pattern=r"^https?://")
    model_version: str = Field(default="unknown", max_length=200)
    exit_code: int | None = None


class ProbeTicket(BaseModel):
    """Asks the pool's agents to run the probe suite on an instance once, and report it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    ticket_id: str
    purpose: str = Field(min_length=1, max_length=50)
    """`confirm`, `probation`, `routine` or `suspicion`; an agent runs the suite for any."""


class RoutedInstance(BaseModel):
    """One instance as the agents should treat it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance_id: Identifier
    base_url: str = Field(pattern=r"^https?://")
    state: InstanceState
    incarnation: int = Field(ge=0)
    weight: Share = 1.0
    """Share of an equal part of the traffic; 0 keeps new requests away."""
    model_version: str = Field(default="unknown", max_length=200)
    probe: ProbeTicket | None = None

    @property
    def in_rotation(self) -> bool:
        """True when new client requests may go there."""
        return self.weight > 0 and self.state in (InstanceState.HEALTHY, InstanceState.SUSPECT)


class RoutingTable(Message):
    """The whole table of one pool; agents keep the highest version (event, also a heartbeat)."""

    exchange = EVENTS
    routing_key = "routing.v1"
    mandatory = False

    pool: Identifier
    version: int = Field(ge=1)
    instances: tuple[RoutedInstance, ...]

    def key_words(self) -> tuple[str, ...]:
        """Return the pool."""
        return (self.pool,)


class RoutingApplied(Message):
    """An agent now routes by this version of its pool's table (event)."""

    exchange = EVENTS
    routing_key = "applied.v1"
    mandatory = False

    agent_id: Identifier
    pool: Identifier
    version: int = Field(ge=0)

    def key_words(self) -> tuple[str, ...]:
        """Return pool and agent."""
        return (self.pool, self.agent_id)


class GateCounts(BaseModel):
    """How often one gate passed, failed and skipped in a window."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    passed: int = Field(default=0, ge=0)
    failed: int = Field(default=0, ge=0)
    skipped: dict[str, int] = Field(default_factory=dict)
    """By reason; a gate that could not judge never counts as passed."""


DelayBin = Annotated[int, Field(ge=0, le=LAST_BIN)]


class TelemetryWindow(InstanceMessage):
    """What one agent saw of one life of an instance in a few seconds (event)."""

    exchange = EVENTS
    routing_key = "telemetry.v1"

    agent_id: Identifier
    incarnation: int = Field(ge=0)
    window_start: UtcDatetime
    window_end: UtcDatetime
    requests: int = Field(default=0, ge=0)
    client_errors: int = Field(default=0, ge=0)
    server_errors: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)
    unguarded: int = Field(default=0, ge=0)
    """Answers that no gate looked at, such as embeddings."""
    in_flight: int = Field(default=0, ge=0)
    gates: dict[CheckLevel, GateCounts] = Field(default_factory=dict)
    sketches: tuple[Sketch, ...] = ()
    """Figures of the answers that passed, for the pool's baseline."""
    first_tokens: dict[DelayBin, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """Streamed answers by the time to their first token: bin k begins at 2^(k/4) ms."""


class RequestRejected(InstanceMessage):
    """A client request that an instance or the whole pool refused (event, from the agent)."""

    exchange = EVENTS
    routing_key = "rejected.v1"

    agent_id: Identifier
    request_id: Identifier
    incarnation: int | None = Field(default=None, ge=0)
    cause: Literal["draining", "unreachable", "broken", "no_instance"]
    rerouted_to: str | None = Field(default=None, max_length=200)
    """The instance that answered instead; absent when the client got an error."""


class StateChanged(InstanceMessage):
    """An instance moved in the state table (event, published by the manager)."""

    exchange = EVENTS
    routing_key = "state.v1"
    mandatory = False

    incarnation: int = Field(ge=0)
    before: InstanceState
    after: InstanceState
    trigger: str
    incident_id: str | None = None
    score: float


class IncidentChanged(InstanceMessage):
    """An incident opened, changed or ended (event, published by the manager)."""

    exchange = EVENTS
    routing_key = "incident.v1"
    mandatory = False

    incident_id: str
    incarnation: int = Field(ge=0)
    condition: str
    status: Literal["open", "held", "resolved", "quarantined", "expired"]
    reason: str = ""
    policy_version: str = ""
    would: str = ""
    """What would be done about it; only of a pool in observe mode, where nothing is."""
    playbook: str = ""
    """The name of the ordered steps that answer it."""


class FleetBrakeChanged(Message):
    """The fleet brake of a pool fell, or a person reset it (event, published by the manager)."""

    exchange = EVENTS
    routing_key = "brake.v1"
    mandatory = False

    pool: Identifier
    status: Literal["fell", "reset"]
    reason: str = ""
    """Why it fell; or who reset it, and what became of what it had held."""
    suspect_version: str = ""
    """The new model version that most of the accused run, if that is so."""

    def key_words(self) -> tuple[str, ...]:
        """Return the pool."""
        return (self.pool,)


MESSAGES: tuple[type[Message], ...] = (
    Verdict,
    ActionRequest,
    TrialRequest,
    DrainInstance,
    EjectInstance,
    RestartInstance,
    ReadmitInstance,
    RepairInstance,
    ReplaceInstance,
    RollBackInstance,
    CommandReport,
    StepFinished,
    InstanceObserved,
    RoutingTable,
    RoutingApplied,
    TelemetryWindow,
    RequestRejected,
    StateChanged,
    IncidentChanged,
    FleetBrakeChanged,
    ShadowSample,
    Baseline,
    Capture,
    CaptureTerms,
)
