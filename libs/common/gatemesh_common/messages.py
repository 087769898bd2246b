"""Every class that crosses the broker: frozen, versioned by key, tolerant of newer fields."""

import hashlib
import json
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    TypeAdapter,
    model_validator,
)

from gatemesh_common.clock import as_utc

# Whoever reads a message needs its words: they are handed on from here.
from gatemesh_common.ids import derived_id as derived_id  # noqa: PLC0414
from gatemesh_common.ids import key_segment as key_segment  # noqa: PLC0414
from gatemesh_common.ids import new_message_id as new_message_id  # noqa: PLC0414
from gatemesh_common.reasons import Reason as Reason  # noqa: PLC0414

ALERTS = "vllm_health_alert"
SHADOW = "vllm_shadow"
CONTROL = "vllm_control"
EVENTS = "vllm_health_event"
DEAD = "gatemesh.dead"


UtcDatetime = Annotated[datetime, AfterValidator(as_utc)]
Identifier = Annotated[str, Field(min_length=1, max_length=200)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class CheckLevel(StrEnum):
    """The five correctness gates."""

    L1 = "L1"
    L2 = "L2"
    L3 = "L3"
    L4 = "L4"
    L5 = "L5"


class Outcome(StrEnum):
    """What a gate concluded."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class Decoding(StrEnum):
    """How tokens were chosen; baselines differ by nats between the two."""

    GREEDY = "greedy"
    SAMPLED = "sampled"
    UNKNOWN = "unknown"


class InstanceState(StrEnum):
    """Where an instance stands in its life around failures."""

    STARTING = "starting"
    PROBATION = "probation"
    HEALTHY = "healthy"
    SUSPECT = "suspect"
    DRAINING = "draining"
    RESTARTING = "restarting"
    REPLACING = "replacing"
    EJECTED = "ejected"
    QUARANTINED = "quarantined"
    RETIRED = "retired"


class Action(StrEnum):
    """What the manager may tell the executor to do to one instance."""

    DRAIN = "drain"
    EJECT = "eject"
    RESTART = "restart"
    READMIT = "readmit"


class ReportOutcome(StrEnum):
    """How a command ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REFUSED = "refused"


StepName = Literal[
    "taken_out", "confirmed", "unconfirmed", "stopped", "killed", "started", "ready", "put_back"
]


class Message(BaseModel):
    """Anything that crosses the broker. Unknown fields of a newer publisher are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    exchange: ClassVar[str]
    routing_key: ClassVar[str]
    """First words of the key; the number rises only on a break."""
    mandatory: ClassVar[bool] = True
    """True when the message has an obliged reader: the broker must route it or return it."""

    message_id: str = Field(default_factory=new_message_id, min_length=1, max_length=200)
    timestamp: UtcDatetime
    traceparent: str | None = Field(default=None, max_length=200)
    """W3C trace context of the request that this message goes back to."""

    def key_words(self) -> tuple[str, ...]:
        """Return the words after the fixed part of the routing key."""
        return ()

    def key(self) -> str:
        """Return the full routing key."""
        return ".".join((self.routing_key, *(key_segment(word) for word in self.key_words())))


class HandmadeMessage(Message):
    """A message that people may publish by hand, too."""

    @model_validator(mode="before")
    @classmethod
    def complete_by_content(cls, data: object) -> object:
        """Give one without an id an id made from its content, and wrap free-text details."""
        if not isinstance(data, dict):
            return data
        filled = dict(data)
        if filled.get("message_id") is None:
            canonical = json.dumps(data, sort_keys=True, default=str)
            filled["message_id"] = derived_id(hashlib.sha256(canonical.encode()).hexdigest())
        if isinstance(filled.get("details"), str):
            filled["details"] = {"text": filled["details"]}
        return filled


class InstanceMessage(Message):
    """A message about one instance; its key ends with pool and instance."""

    instance_id: Identifier
    pool: Identifier = "default"

    def key_words(self) -> tuple[str, ...]:
        """Return pool and instance."""
        return (self.pool, self.instance_id)


class Span(BaseModel):
    """The part of an answer that is at fault, half-open, counted from its start."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    char_start: int | None = Field(default=None, ge=0)
    char_end: int | None = Field(default=None, ge=0)
    token_start: int | None = Field(default=None, ge=0)
    token_end: int | None = Field(default=None, ge=0)


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
    details: dict[str, Any] = Field(default_factory=dict)

    def key_words(self) -> tuple[str, ...]:
        """Return gate, pool and instance."""
        return (self.check_level.lower(), self.pool or "default", self.instance_id)


class ActionRequest(HandmadeMessage):
    """An operator asks the manager for an action on one instance, or to pause or resume acting."""

    exchange = CONTROL
    routing_key = "request.v1"

    action: Literal["drain", "eject", "restart", "release", "quarantine", "pause", "resume"]
    pool: Identifier = "default"
    instance_id: Identifier | None = None
    requested_by: Identifier
    reason: str = Field(default="", max_length=500)

    @model_validator(mode="after")
    def name_an_instance(self) -> "ActionRequest":
        """Refuse a request about an instance that names none."""
        if self.instance_id is None and self.action not in ("pause", "resume"):
            raise ValueError(f"instance_id: required for action {self.action!r}")
        return self

    def key_words(self) -> tuple[str, ...]:
        """Return action and pool."""
        return (self.action, self.pool)


class InstanceCommand(InstanceMessage):
    """An order to the executor about one life of one instance."""

    exchange = CONTROL
    routing_key = "command.v1"

    action: Action
    incarnation: int = Field(ge=0)
    life_id: str | None = Field(default=None, max_length=200)
    """The backend's name of the life in question; if another one runs, the order is done."""
    fence: int = Field(ge=1)
    """Rises with each command of an instance; one below the highest seen is refused."""
    incident_id: str | None = None
    expires_at: UtcDatetime
    grace_s: float = Field(default=60.0, ge=0, le=3600)
    """Longest wait for running requests before the process group is killed, in seconds."""

    def key_words(self) -> tuple[str, ...]:
        """Return action, pool and instance."""
        return (self.action, self.pool, self.instance_id)


class DrainInstance(InstanceCommand):
    """Take out, let running requests end, stop within the grace, then kill."""

    action: Literal[Action.DRAIN] = Action.DRAIN
    routing_version: int = Field(default=0, ge=0)
    """The first routing table without the instance; agents must have applied it before SIGTERM."""


class EjectInstance(InstanceCommand):
    """Take out of every balancer at once; the process stays up for confirmation."""

    action: Literal[Action.EJECT] = Action.EJECT
    routing_version: int = Field(default=0, ge=0)


class RestartInstance(InstanceCommand):
    """End the named life, if it still runs, and start a new one; done when it answers `/health`."""

    action: Literal[Action.RESTART] = Action.RESTART
    start_timeout_s: float = Field(default=300.0, gt=0, le=3600)


class ReadmitInstance(InstanceCommand):
    """Put back into every balancer."""

    action: Literal[Action.READMIT] = Action.READMIT


Command = Annotated[
    DrainInstance | EjectInstance | RestartInstance | ReadmitInstance, Discriminator("action")
]
COMMAND: TypeAdapter[DrainInstance | EjectInstance | RestartInstance | ReadmitInstance] = (
    TypeAdapter(Command)
)


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
    killed: bool = False
    """True when running requests outlasted the grace and the process group was killed."""
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
    purpose: Literal["confirm", "probation"]


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


MESSAGES: tuple[type[Message], ...] = (
    Verdict,
    ActionRequest,
    DrainInstance,
    EjectInstance,
    RestartInstance,
    ReadmitInstance,
    CommandReport,
    StepFinished,
    InstanceObserved,
    RoutingTable,
    RoutingApplied,
    TelemetryWindow,
    RequestRejected,
    StateChanged,
    IncidentChanged,
)
