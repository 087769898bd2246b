"""What goes to the shadow, and the baselines that are shared by all agents of a pool."""

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gatemesh_common.exchanges import EVENTS, SHADOW
from gatemesh_common.message import InstanceMessage, Message
from gatemesh_common.words import Decoding, Identifier, Share

SHARES = (0.001, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.999)
"""Of the answers: the places at which an entry's quantiles are read."""


ANY_SCRIPT = "any"
"""Entries under this name tell of the answers of all scripts together."""
BAND_MARK = "~"
"""Parts a script from the band of the temperature that its answers were drawn at: `latin~warm`."""


def any_script(script: str) -> str:
    """Return the name of all scripts together that has the band of this one."""
    _, mark, band = script.partition(BAND_MARK)
    return ANY_SCRIPT + mark + band


Figure = Annotated[float, Field(allow_inf_nan=False, ge=-1e9, le=1e9)]
"""A figure that can be reckoned with: one absurd sketch must not spoil a pool's baseline."""


class ShadowSample(InstanceMessage):
    """One answer to be compared with a healthy instance (event, published by the agent).

    It carries prompt and answer, so its queue is bounded in number, and readers drop what is old.
    """

    exchange = SHADOW
    routing_key = "sample.v1"

    agent_id: Identifier
    incarnation: int | None = Field(default=None, ge=0)
    """Which life of the instance answered; absent when no manager has numbered it."""
    model_version: str | None = Field(default=None, max_length=200)
    request_id: Identifier
    choice: int = Field(default=0, ge=0)
    path: str = Field(pattern=r"^/v1/[a-z/]+$")
    """The route that was asked, such as `/v1/chat/completions`."""
    request: dict[str, Any]
    """The client's request as the client wrote it."""
    text: str
    """The answer's text."""
    tool_calls: tuple[dict[str, Any], ...] = ()
    finish_reason: str | None = Field(default=None, max_length=50)
    token_ids: tuple[int, ...] | None = None
    """The answer's tokens, where the engine told them; all of them, or none."""
    logprobs: tuple[float | None, ...] | None = None
    """Log probability (nats) of each of these tokens as the instance itself reported it."""
    decoding: Decoding = Decoding.UNKNOWN
    prompt_fingerprint: str | None = Field(default=None, max_length=128)
    tenant: str | None = Field(default=None, max_length=128)
    cause: Literal["random", "suspicion", "header"] = "random"
    """Why it was taken."""

    def key_words(self) -> tuple[str, ...]:
        """Return the pool."""
        return (self.pool,)


BinPlace = Annotated[int, Field(ge=-(10**9), le=10**9)]
BinCount = Annotated[int, Field(ge=0, le=10**9)]


class Sketch(BaseModel):
    """A histogram of one figure over many answers; sketches are merged by adding counts."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    metric: str = Field(min_length=1, max_length=50)
    """Name of the figure, such as `nll_whole` (nats per token)."""
    decoding: Decoding
    script: str = Field(max_length=30)
    """Main script of the answers, such as `latin` or `han`; where tokens were drawn followed by the
    band of the temperature, as in `latin~warm`."""
    width: float = Field(ge=1e-6, le=1e3, allow_inf_nan=False)
    """Width of a bin in the figure's unit; bin n holds values from n * width on."""
    bins: dict[BinPlace, BinCount] = Field(default_factory=dict, max_length=20_000)


class BaselineEntry(BaseModel):
    """What is normal for one figure of one kind of answer."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    metric: str = Field(min_length=1, max_length=50)
    decoding: Decoding
    script: str = Field(max_length=30)
    count: int = Field(ge=0, le=10**12)
    """Answers it was learnt from."""
    median: Figure
    mad: float = Field(ge=0, le=1e9, allow_inf_nan=False)
    """Median absolute deviation from the median, in the figure's unit."""
    quantiles: tuple[Figure, ...] | None = None
    """The figure at each of `SHARES`, rising; absent where only median and MAD are known."""

    @model_validator(mode="after")
    def rise(self) -> "BaselineEntry":
        """Refuse quantiles that fall: no figure has a place among them."""
        values = self.quantiles or ()
        if any(after < before for before, after in pairwise(values)):
            raise ValueError("quantiles: must rise")
        return self


class Baseline(Message):
    """The pool's baseline for one model version (event, also a heartbeat; by the manager).

    Learnt from instances that are healthy; agents keep the highest version.
    """

    exchange = EVENTS
    routing_key = "baseline.v1"
    mandatory = False

    pool: Identifier
    model_version: str = Field(max_length=200)
    version: int = Field(ge=1)
    shadow_share: Share = 0.0
    """Share of answers that agents send to the shadow at least."""
    entries: tuple[BaselineEntry, ...] = ()

    def key_words(self) -> tuple[str, ...]:
        """Return the pool."""
        return (self.pool,)
