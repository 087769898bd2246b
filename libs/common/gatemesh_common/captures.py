"""Captures: the window around a fault as it travels, and the terms on which agents take them."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gatemesh_common.exchanges import EVENTS
from gatemesh_common.message import InstanceMessage, Message, Span
from gatemesh_common.reasons import Reason
from gatemesh_common.words import CheckLevel, Decoding, Identifier, Share

MOST_STEPS = 112
"""Of a window: 64 before the fault, 16 after it, and some of the fault itself."""
MOST_CANDIDATES = 5
MOST_LABELS = 32

TextPolicy = Literal["none", "window", "full"]
"""How much text leaves an agent: none at all, that of the window, or prompt and answer."""
BuiltinRule = Literal["email", "phone", "key", "card"]
BUILTIN_RULES: tuple[BuiltinRule, ...] = ("email", "phone", "key", "card")
TextWithheld = Literal["late", "too_long", "rule_unusable"]
"""Why a capture has no text although the policy allows it."""

Nats = Annotated[float, Field(allow_inf_nan=False)]
RuleName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


class RedactionRule(BaseModel):
    """What else must not leave an agent: a regular expression with a name."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: RuleName
    """Stands in the text where the rule struck, as `[name]`."""
    pattern: str = Field(min_length=1, max_length=500)


class CaptureStep(BaseModel):
    """One step of a window; no text."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    n: int = Field(ge=0)
    """Number of the step in its answer, from 0."""
    logprob: Nats | None = None
    """Of the chosen token, nats; absent: not told, or not a number."""
    entropy: Nats | None = None
    """Lower bound, nats."""
    top: tuple[Nats, ...] = Field(default=(), max_length=MOST_CANDIDATES)
    """The largest log probabilities, falling."""
    fault: bool = False
    """True within the span at fault."""


class CaptureTexts(BaseModel):
    """Text of a capture, redacted before it left the agent."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tokens: tuple[str, ...] = Field(default=(), max_length=MOST_STEPS)
    """Of each step of the window."""
    prompt: str | None = None
    answer: str | None = None
    second_answer: str | None = None
    """What another instance answered to the same request."""
    is_cut: bool = False
    """True when something was left out for its size."""


class Capture(InstanceMessage):
    """The window around a fault, kept by the agent; or two answers, by the shadow (event).

    Its queue is bounded in number; what the broker does not take is dropped.
    """

    exchange = EVENTS
    routing_key = "capture.v1"

    agent_id: Identifier
    source: Literal["agent", "shadow"] = "agent"
    incarnation: int | None = Field(default=None, ge=0)
    model: str | None = Field(default=None, max_length=200)
    """As the client named it."""
    model_version: str | None = Field(default=None, max_length=200)
    engine_version: str | None = Field(default=None, max_length=200)
    labels: dict[str, str] = Field(default_factory=dict, max_length=MOST_LABELS)
    """Such as host and GPU."""
    request_id: Identifier
    choice: int = Field(default=0, ge=0)
    verdict_id: str = Field(max_length=200)
    """Id of the verdict's message."""
    check_level: CheckLevel
    reason: Reason
    hard: bool = False
    score: float | None = None
    threshold: float | None = None
    span: Span | None = None
    gate_version: str | None = Field(default=None, max_length=50)
    decoding: Decoding = Decoding.UNKNOWN
    finish_reason: str | None = Field(default=None, max_length=50)
    """None while the answer goes on."""
    sampling: dict[str, float | bool] = Field(default_factory=dict, max_length=64)
    """Numbers of the request that say how tokens are picked."""
    gates: dict[str, dict[str, Nats]] = Field(default_factory=dict, max_length=32)
    """Running figures of each gate at that moment."""
    steps: tuple[CaptureStep, ...] = Field(default=(), max_length=MOST_STEPS)
    steps_seen: int = Field(default=0, ge=0)
    chars_seen: int = Field(default=0, ge=0)
    text_policy: TextPolicy = "none"
    text_withheld: TextWithheld | None = None
    texts: CaptureTexts | None = None
    redactions: dict[str, int] = Field(default_factory=dict)
    """How often each rule struck."""
    second_instance_id: Identifier | None = None


class CaptureTerms(Message):
    """On what terms the agents of a pool take captures (event, also a heartbeat; by the manager).

    Whoever has heard none keeps figures only.
    """

    exchange = EVENTS
    routing_key = "capture_terms.v1"
    mandatory = False

    pool: Identifier
    text: TextPolicy = "none"
    builtin_rules: tuple[BuiltinRule, ...] = BUILTIN_RULES
    rules: tuple[RedactionRule, ...] = Field(default=(), max_length=100)
    share: Share = 1.0
    """Share of the failures that are captured, within the rates."""
    per_reason_per_min: float = Field(default=2.0, ge=0, le=600)
    """Most captures in a minute of one instance for one reason, by each agent."""
    per_min: float = Field(default=30.0, ge=0, le=6000)
    """Most captures in a minute by each agent; 0 takes none."""
    max_bytes: int = Field(default=64 * 2**10, ge=1024, le=2**20)
    """Most text in one capture."""

    def key_words(self) -> tuple[str, ...]:
        """Return the pool."""
        return (self.pool,)

    def is_as(self, other: "CaptureTerms") -> bool:
        """Return True where two messages say the same."""
        own = {"message_id", "timestamp", "traceparent"}
        return self.model_dump(exclude=own) == other.model_dump(exclude=own)
