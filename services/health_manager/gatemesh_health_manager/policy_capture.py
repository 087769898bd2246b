"""The rules of captures: how much text they carry, what is taken out, how many there are."""

from datetime import datetime

from pydantic import Field, field_validator

from gatemesh_common.captures import (
    BUILTIN_RULES,
    BuiltinRule,
    CaptureTerms,
    RedactionRule,
    RuleName,
    TextPolicy,
)
from gatemesh_common.redaction import Redactor
from gatemesh_health_manager.policy_section import Section


class OwnRule(Section):
    """What else must not leave an agent."""

    name: RuleName
    pattern: str = Field(min_length=1, max_length=500)
    """A regular expression; what it matches is replaced by its name."""

    @property
    def as_told(self) -> RedactionRule:
        """The rule as agents are told of it."""
        return RedactionRule(name=self.name, pattern=self.pattern)


class CapturePolicy(Section):
    """What agents and shadows keep of an answer that was failed."""

    text: TextPolicy = "none"
    """`none`: figures only; `window`: text of the steps around the fault; `full`: all of it."""
    builtin_rules: frozenset[BuiltinRule] = frozenset(BUILTIN_RULES)
    rules: tuple[OwnRule, ...] = Field(default=(), max_length=100)
    share: float = Field(default=1.0, ge=0, le=1)
    """Share of the failures that are captured, within the rates."""
    per_reason_per_min: float = Field(default=2.0, ge=0, le=600)
    """Most captures in a minute of one instance for one reason, by each agent."""
    per_min: float = Field(default=30.0, ge=0, le=6000)
    """Most captures in a minute by each agent; 0 takes none."""
    max_bytes: int = Field(default=65_536, ge=1024, le=1_048_576)
    """Most text in one capture."""

    @field_validator("rules")
    @classmethod
    def compile_each(cls, value: tuple[OwnRule, ...]) -> tuple[OwnRule, ...]:
        """Refuse a pattern that is none, before an agent has to."""
        Redactor((), [rule.as_told for rule in value])
        return value


def capture_terms(pool: str, rules: CapturePolicy, now: datetime) -> CaptureTerms:
    """Return what the agents and shadows of a pool are told."""
    return CaptureTerms(
        timestamp=now,
        pool=pool,
        text=rules.text,
        builtin_rules=tuple(name for name in BUILTIN_RULES if name in rules.builtin_rules),
        rules=tuple(rule.as_told for rule in rules.rules),
        share=rules.share,
        per_reason_per_min=rules.per_reason_per_min,
        per_min=rules.per_min,
        max_bytes=rules.max_bytes,
    )
