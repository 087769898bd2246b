"""The probe suite: prompts with checked answers, and who has to know which."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from gatemesh_common.errors import SettingsError

OWN_SUITE = Path(__file__).with_name("probe_suite.toml")


class Prompt(BaseModel):
    """One question and what its answer must look like."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9-]{1,40}$")
    text: str = Field(min_length=1)
    expect: str
    """Searched for in the answer, without regard to case."""
    max_tokens: int = Field(default=24, ge=1, le=512)
    json_object: bool = False
    """True when the answer is asked for as a JSON object."""

    @field_validator("expect")
    @classmethod
    def _compile(cls, pattern: str) -> str:
        re.compile(pattern)
        return pattern

    def matches(self, answer: str) -> bool:
        """Return True for a right answer."""
        return re.search(self.expect, answer, re.IGNORECASE | re.DOTALL) is not None


class ModelRule(BaseModel):
    """What a model must know: small models cannot answer everything when they are healthy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: str
    """Searched for in the model's name, without regard to case; the first rule that fits counts."""
    required: tuple[str, ...] = ()
    """Prompts that must be answered rightly."""
    min_pass_share: float = Field(default=0.0, ge=0.0, le=1.0)
    """Least share of all prompts that must be answered rightly."""


class Suite(BaseModel):
    """All prompts and rules of one version."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str = Field(min_length=1, max_length=50)
    prompts: tuple[Prompt, ...] = Field(min_length=1)
    models: tuple[ModelRule, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _know_what_is_required(self) -> "Suite":
        known = {prompt.id for prompt in self.prompts}
        for rule in self.models:
            unknown = set(rule.required) - known
            if unknown:
                raise ValueError(f"models: {rule.pattern!r} requires unknown prompts {unknown}")
        return self

    def rule_for(self, model: str) -> ModelRule:
        """Return the first rule that fits a model's name; without one, clean answers suffice."""
        fitting = (rule for rule in self.models if re.search(rule.pattern, model, re.IGNORECASE))
        return next(fitting, ModelRule(pattern=""))


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one prompt."""

    prompt_id: str
    matched: bool
    fault: str | None = None
    """The gate's reason, or what went wrong, when the answer itself is at fault."""
    refused: bool = False
    """True when the engine would not take the prompt, which says nothing about its answers."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a suite."""

    passed: bool
    judged: bool
    """False when every prompt was refused: nothing is known about the instance."""
    share: float
    threshold: float
    details: Mapping[str, Any]


def conclude(suite: Suite, model: str, answers: tuple[Answer, ...]) -> Result:
    """Judge a suite: no answer at fault, every required one right, and enough right overall."""
    rule = suite.rule_for(model)
    faults = {answer.prompt_id: answer.fault for answer in answers if answer.fault}
    wrong = {answer.prompt_id for answer in answers if not answer.matched}
    share = 1.0 - len(wrong) / len(answers) if answers else 0.0
    failed = sorted(faults.keys() | (wrong & set(rule.required)))
    passed = bool(answers) and not failed and share >= rule.min_pass_share
    details = {
        "suite_version": suite.version,
        "model": model[:200],
        "passed": len(answers) - len(wrong),
        "total": len(answers),
        "failed": failed if failed or passed else sorted(wrong),
        "faults": faults,
    }
    judged = any(not answer.refused for answer in answers)
    return Result(passed and judged, judged, share, rule.min_pass_share, details)


def load_suite(path: Path | None) -> Suite:
    """Read a suite file; None reads the one that comes with the agent.

    Raises:
        SettingsError: it cannot be read, or is no suite; the text names what is wrong.
    """
    source = path or OWN_SUITE
    try:
        return Suite.model_validate(tomllib.loads(source.read_text(encoding="utf-8")))
    except OSError as error:
        raise SettingsError(
            f"GATEMESH_AGENT_PROBE_SUITE: {source} cannot be read ({error.strerror})"
        ) from error
    except (tomllib.TOMLDecodeError, ValidationError, ValueError) as error:
        raise SettingsError(f"GATEMESH_AGENT_PROBE_SUITE: {source} is wrong: {error}") from error
