"""What is known of an instance, and what one decision changes: plain frozen values."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Self

from gatemesh_common.messages import (
    Action,
    AnyCommand,
    InstanceState,
    ProbeTicket,
    ReportOutcome,
)
from gatemesh_health_manager.measuring import Measures
from gatemesh_health_manager.playbooks import ROLL_BACK, Step, Steps, steps_before_playbooks
from gatemesh_health_manager.states import SERVING, Trigger
from gatemesh_health_manager.streaks import NO_STREAKS, Streaks

IncidentStatus = Literal["open", "held", "resolved", "quarantined", "expired"]


class Condition(StrEnum):
    """Why an incident was opened."""

    A = "A"
    """Many soft failures in a short time."""
    B = "B"
    """Hard proof."""
    C = "C"
    """The shadow disagrees again and again."""
    D = "D"
    """Probe suites fail in a row."""
    EXIT = "exit"
    """The process left by itself."""
    PROBES = "probes"
    """A first start that the probe suite refused."""
    OVERDUE = "overdue"
    """A stopped instance that did not come up by itself."""
    OPERATOR = "operator"
    ROLL_BACK = "roll_back"
    """The rules roll a model version back, since most of those that run it were accused."""
    OWN = "own"
    """A condition that the rules define; the incident tells which."""


@dataclass(frozen=True)
class Incident:
    """One occurrence of a condition on one life of an instance."""

    incident_id: str
    incarnation: int
    condition: Condition
    status: IncidentStatus
    opened_at: datetime
    cause: str
    """Why it was opened; stays."""
    reason: str
    """How it stands, in the end how it ended."""
    playbook: str = "restart"
    ended_at: datetime | None = None
    own_name: str = ""
    """The name of an own condition."""
    would: str = ""
    """What would be done about it; only in observe mode, where nothing is."""
    core_dump: str = ""
    """Where the core dump of the life lies, if one was taken."""

    traceparent: str | None = None
    """The W3C trace that it belongs to: that of the request whose verdict opened it, if one did."""

    steps: Steps = ()
    """Of the playbook, as they were when it was opened; none where none were stored."""

    @property
    def name(self) -> str:
        """What people call the condition."""
        return self.own_name or self.condition.value

    @property
    def rolls_back(self) -> bool:
        """True when the model version is to be rolled back."""
        return self.playbook == ROLL_BACK.name

    @property
    def is_wanted(self) -> bool:
        """True where a person asked for it, or the rules want it although the brake is on."""
        return self.condition in (Condition.OPERATOR, Condition.ROLL_BACK)

    @property
    def plan(self) -> Steps:
        """The steps that answer it."""
        return self.steps or steps_before_playbooks(self.condition.value, self.playbook)

    @property
    def only_told(self) -> bool:
        """True where nothing is done about it: in observe mode, or by its playbook."""
        return bool(self.would) or self.only_tells

    @property
    def only_tells(self) -> bool:
        """True where its playbook does nothing; it gives way to any condition that acts."""
        return self.steps == ("tell",)


@dataclass(frozen=True)
class Flight:
    """The command that an instance is waiting for; there is never more than one."""

    command_id: str
    action: Action
    due_at: datetime


@dataclass(frozen=True)
class InstanceRecord:
    """Everything the manager knows of one instance."""

    instance_id: str
    pool: str
    state: InstanceState
    state_since: datetime
    penalty_at: datetime
    penalty: float = 0.0
    """Points lost at `penalty_at`; they fade by half-life."""
    incarnation: int = 0
    life_id: str | None = None
    """The backend's name of the present life, or of the last one when stopped."""
    running: bool = False
    base_url: str | None = None
    """Absent until the executor has observed the instance."""
    model_version: str = "unknown"
    former_version: str | None = None
    """The model version before the present one; absent where no change was seen."""
    version_since: datetime | None = None
    """When the model version changed last."""
    rolled_back_at: datetime | None = None
    """When its model version was last told to be rolled back."""
    observed_at: datetime | None = None
    evidence_since: datetime | None = None
    """Failures up to this moment have been answered and count for nothing."""
    refuted_at: datetime | None = None
    """When a hard proof on the present life was last refuted."""
    streaks: Streaks = NO_STREAKS
    readmitted_at: datetime | None = None
    """When it last came back into rotation."""
    accused_at: datetime | None = None
    """When a condition last opened an incident here."""
    repaired_at: datetime | None = None
    """When repair in place was last tried on the present life."""
    fence: int = 0
    wanted: Action | None = None
    """The command to send as soon as none is in flight, no brake is on, and it is due."""
    wanted_from: datetime | None = None
    """When it is due, which a restart is once its back-off is over."""
    target_life: str | None = None
    """The life that the incident is about; a restart ends this one and no other."""
    flight: Flight | None = None
    ticket: ProbeTicket | None = None
    ticket_until: datetime | None = None
    """When the ticket of an instance in rotation is void."""
    closed_tickets: tuple[str, ...] = ()
    """The latest tickets that were answered or are void; answers to them count for nothing."""
    probed_at: datetime | None = None
    """When an instance in rotation was last asked for the probe suite."""
    probe_from: datetime | None = None
    """From when on a probe out of turn is wanted."""
    shift_until: datetime | None = None
    """While set, traffic is shifted away; the drain begins at that moment."""
    due_at: datetime | None = None
    """When waiting in this state is over, whatever happens."""
    restarts: tuple[datetime, ...] = ()
    outs: tuple[datetime, ...] = ()
    """When conditions took it out lately, as far as flap damping needs to know."""
    weight: float = 0.0
    """Routing weight as last published."""
    weight_ceiling: float | None = None
    """The most that an operator lets it get; stays until it is lifted."""
    incident: Incident | None = None

    def due_by(self, now: datetime) -> Action | None:
        """Return the command that may be sent by now, as far as other commands and times go."""
        waits = self.wanted_from is not None and now < self.wanted_from
        return None if waits or self.flight is not None else self.wanted

    def has_step(self, step: Step) -> bool:
        """True while an incident is open whose playbook has this step."""
        return self.incident is not None and step in self.incident.plan

    def having(self, **fields: Any) -> Self:
        """Return a copy with other values, in a tenth of the time of `dataclasses.replace`.

        Raises:
            TypeError: there is no field of that name.
        """
        if not fields.keys() <= self.__dict__.keys():
            unknown = ", ".join(sorted(fields.keys() - self.__dict__.keys()))
            raise TypeError(f"an instance has no field {unknown}")
        copy = object.__new__(type(self))
        # Frozen are the attributes; what they lie in is filled once, before anybody sees it.
        copy.__dict__.update(self.__dict__, **fields)
        return copy

    @property
    def serving(self) -> bool:
        """True when clients' requests may go there."""
        return self.state in SERVING

    @property
    def has_traffic(self) -> bool:
        """True when requests do go there: no operator keeps them away by a ceiling of 0."""
        return self.serving and self.weight_ceiling != 0

    @property
    def observed(self) -> bool:
        """True once the executor knows the instance; nothing is done to it before."""
        return self.base_url is not None


@dataclass(frozen=True)
class PoolFacts:
    """What a decision about one instance must know of its pool, that instance included."""

    total: int
    serving: int
    paused: bool = False
    routing_version: int = 0
    probing: int = 0
    """Instances in rotation that are being probed."""
    braked: bool = False
    """True while the fleet brake is on."""
    braked_at: datetime | None = None
    suspect_version: str = ""
    """The model version that most of the accused run since lately; empty for none."""
    brake_reset_at: datetime | None = None
    accused: frozenset[str] = frozenset()
    """Instances accused lately, as the fleet brake counts them."""


@dataclass(frozen=True)
class Tick:
    """The passing of time, as an event."""

    message_id: str
    requests: int = 0
    """Client requests since the instance was last probed."""
    measures: Measures = ()
    """What the conditions over telemetry go by, at moments when they are looked at."""


@dataclass(frozen=True)
class Transition:
    """One step in the state table."""

    before: InstanceState
    after: InstanceState
    trigger: Trigger
    incarnation: int
    incident_id: str | None
    score: float


@dataclass(frozen=True)
class CommandOrder:
    """A command to send now."""

    command: AnyCommand
    due_at: datetime


@dataclass(frozen=True)
class CommandEnd:
    """The end of a command, by report or by time."""

    command_id: str
    outcome: ReportOutcome | Literal["expired"]
    reason: str = ""


@dataclass(frozen=True)
class Decision:
    """Everything that one event changes; stored in one transaction or not at all."""

    record: InstanceRecord
    transitions: tuple[Transition, ...] = ()
    incidents: tuple[Incident, ...] = ()
    commands: tuple[CommandOrder, ...] = ()
    ends: tuple[CommandEnd, ...] = ()
    refusal: str | None = None
    """Why an operator's request was not followed."""
    brake: str | None = None
    """Why the fleet brake falls with this decision."""
    routing_changed: bool = field(default=False)
