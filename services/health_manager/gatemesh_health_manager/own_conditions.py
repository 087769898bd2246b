"""Conditions that the rules define: four kinds, each with its own keys."""

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from gatemesh_common.messages import CheckLevel, Reason
from gatemesh_health_manager.playbooks import PlaybookName
from gatemesh_health_manager.policy_section import LONGEST_STREAK, Seconds, Section

TAKEN_NAMES = frozenset({"exit", "probes", "overdue", "operator", "own", "roll_back"})
"""Words by which incidents are named that no own condition has opened."""
TOLD_ONE_BY_ONE = frozenset({CheckLevel.L4, CheckLevel.L5})
"""Gates whose passes are told too; of the others, only failures are."""
LONGEST_SPAN_S = 6 * 3600.0
"""Telemetry is added up over no longer span: each look reads all of it."""

Span = Annotated[float, Field(gt=0, le=LONGEST_SPAN_S)]
Answers = Annotated[int, Field(ge=1, le=1_000_000_000)]


class Named(Section):
    """What all kinds have."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{1,39}$")
    """What incidents, views and logs call it."""
    playbook: PlaybookName = "restart"
    """What answers it; one of those that are shipped, or of `[playbooks]`."""

    @field_validator("name")
    @classmethod
    def be_another_word(cls, value: str) -> str:
        """Refuse the words that incidents have already."""
        if value in TAKEN_NAMES:
            raise ValueError(f"is taken; known words: {', '.join(sorted(TAKEN_NAMES))}")
        return value


class OwnCondition(Named):
    """So many failures of some gates within some time."""

    kind: Literal["count"] = "count"
    levels: frozenset[CheckLevel] = Field(min_length=1)
    reasons: frozenset[Reason] = frozenset()
    """Only failures for one of these reasons count; without any, all do."""
    hard: bool | None = None
    """True: only proofs count; false: only what is no proof; unset: both."""
    more_than: int = Field(default=0, ge=0, le=10_000)
    """Failures that are still tolerated; one more acts."""
    window_s: Seconds = 60.0
    min_prompts: int = Field(default=1, ge=1, le=10_000)
    min_tenants: int = Field(default=1, ge=1, le=10_000)
    max_per_prompt: int = Field(default=1, ge=1, le=10_000)
    """How often one prompt counts within the window; where tenants count, one of one tenant."""

    @property
    def by_tenant(self) -> bool:
        """True where it matters whose prompts fail."""
        return self.min_tenants > 1


class ConsecutiveCondition(Named):
    """Failures of some gates with no pass between."""

    kind: Literal["consecutive"]
    levels: frozenset[CheckLevel] = Field(min_length=1)
    reasons: frozenset[Reason] = frozenset()
    """Only failures for one of these reasons count; others neither count nor end the row."""
    hard: bool | None = None
    consecutive: int = Field(ge=1, le=LONGEST_STREAK)
    """Failures without a pass between that act."""
    min_prompts: int = Field(default=1, ge=1, le=LONGEST_STREAK)

    @field_validator("levels")
    @classmethod
    def be_told_one_by_one(cls, value: frozenset[CheckLevel]) -> frozenset[CheckLevel]:
        """Refuse gates whose passes nobody tells one by one: nothing would end a row of theirs."""
        others = sorted(value - TOLD_ONE_BY_ONE)
        if others:
            possible = ", ".join(sorted(TOLD_ONE_BY_ONE))
            raise ValueError(
                f"passes of {', '.join(others)} are not told one by one, so nothing would end a "
                f'row; possible: {possible}, or kind = "count" or "rate"'
            )
        return value


class RateCondition(Named):
    """A share of the answers, or the speed of an instance, over its telemetry."""

    kind: Literal["rate"]
    of: Literal["server_errors", "failures", "unguarded", "tokens_per_s", "first_token_p95"]
    """Shares of the answers; tokens per second of one running request; a delay of streams."""
    levels: frozenset[CheckLevel] = frozenset()
    """With `failures`: only of these gates; without any, of all."""
    reasons: frozenset[Reason] = frozenset()
    """With `failures`: only for one of these reasons."""
    more_than: float | None = Field(default=None, ge=0, lt=1)
    """Share that is still tolerated."""
    times_pool: float | None = Field(default=None, gt=1, le=1000)
    """How many times worse than the median of the other instances in rotation acts."""
    window_s: Span = 300.0
    min_answers: Answers = 20
    """With fewer answers in the window nothing is concluded."""

    @model_validator(mode="after")
    def have_a_limit(self) -> Self:
        """Refuse a rule that nothing could break, and limits that do not belong together."""
        is_share = self.of not in ("tokens_per_s", "first_token_p95")
        if not is_share and (self.more_than is not None or self.times_pool is None):
            raise ValueError(
                f"times_pool: {self.of} is compared with the pool; it has no more_than"
            )
        if self.more_than is None and self.times_pool is None:
            raise ValueError("more_than: needs a share, or times_pool a factor")
        _refuse_idle_filters(self.of == "failures", self.levels | self.reasons)
        return self


class BurnCondition(Named):
    """An error budget that burns too fast, in a short and in a long window."""

    kind: Literal["slo_burn"]
    objective: float = Field(default=0.99, gt=0, lt=1)
    """Share of answers that are to be good."""
    bad: frozenset[Literal["server_errors", "failures"]] = Field(
        default=frozenset({"server_errors", "failures"}), min_length=1
    )
    levels: frozenset[CheckLevel] = frozenset()
    reasons: frozenset[Reason] = frozenset()
    fast_s: Span = 300.0
    slow_s: Span = 3600.0
    burn_more_than: float = Field(default=14.4, gt=0)
    """Times the pace at which the budget would just last; both windows must be above it."""
    min_answers: Answers = 20

    @model_validator(mode="after")
    def be_possible(self) -> Self:
        """Refuse windows in the wrong order, and a burn that even all bad answers do not reach."""
        if self.slow_s <= self.fast_s:
            raise ValueError("slow_s: must be longer than fast_s")
        most = round(1 / (1 - self.objective), 6)
        if self.burn_more_than >= most:
            raise ValueError(
                f"burn_more_than: can never be exceeded; with objective {self.objective:g} all "
                f"answers bad are a burn of {most:g}"
            )
        _refuse_idle_filters("failures" in self.bad, self.levels | self.reasons)
        return self


def _refuse_idle_filters(counts_failures: bool, filters: Iterable[object]) -> None:  # noqa: FBT001
    if not counts_failures and any(filters):
        raise ValueError('levels: say which "failures" count, which this rule does not count')


TelemetryCondition = RateCondition | BurnCondition
"""Kinds that are looked at by time, over telemetry."""
KINDS = ("count", "consecutive", "rate", "slo_burn")


def kind_of(value: object) -> object:
    """Return the kind of a condition, read or not; one that names none counts."""
    return value.get("kind", "count") if isinstance(value, dict) else getattr(value, "kind", None)


AnyOwnCondition = Annotated[
    Annotated[OwnCondition, Tag("count")]
    | Annotated[ConsecutiveCondition, Tag("consecutive")]
    | Annotated[RateCondition, Tag("rate")]
    | Annotated[BurnCondition, Tag("slo_burn")],
    Discriminator(
        kind_of,
        custom_error_type="unknown_kind",
        custom_error_message=f"kind: must be one of {', '.join(KINDS)}",
    ),
]
