"""The probe suite: prompts with checked answers, and who has to know which."""

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from gatemesh_agent.checking import fits_code, fits_copy, fits_json, fits_number, fits_pattern
from gatemesh_common.errors import SettingsError
from gatemesh_common.invalid import words_of

OWN_SUITE = Path(__file__).with_name("probe_suite")
HEAD_FILE = "suite.toml"
PAIRS_PER_RUN = 3
"""Prompts that are asked with a prefix, each once fresh and once cached."""
LEAST_CACHE_SIGNS = 2
"""Near-ties part one pair now and then; two pairs at once are a sign."""


class Code(BaseModel):
    """What a function must be like."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    arguments: int = Field(ge=0, le=10)
    operator: Literal["+", "-", "*", "%"]


class Prompt(BaseModel):
    """One question and what its answer must be like: exactly one check."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9-]{1,40}$")
    text: str = Field(min_length=1)
    expect: str | None = None
    """Pattern searched for without regard to case, with and without marks of form."""
    number: int | None = None
    """The number that the answer gives, in digits or in words."""
    copied: str | None = Field(default=None, alias="copy")
    """Found sign by sign."""
    fields: Mapping[str, Any] | None = Field(default=None, alias="json")
    """Fields of a JSON object; `*` takes any value."""
    code: Code | None = None
    max_tokens: int = Field(default=24, ge=1, le=512)
    json_object: bool = False
    """True when the answer is asked for as a JSON object."""
    quick: bool = False
    """True when it is also asked where an answer is needed within seconds."""
    prefixed: bool = False
    """True when it may be asked after the suite's conversation, fresh and cached."""

    @field_validator("expect")
    @classmethod
    def _compile(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            re.compile(pattern)
        return pattern

    @model_validator(mode="after")
    def _have_one_check(self) -> "Prompt":
        checks = (self.expect, self.number, self.copied, self.fields, self.code)
        if sum(check is not None for check in checks) != 1:
            raise ValueError(f"{self.id}: give one of expect, number, copy, json, code")
        return self

    def matches(self, answer: str) -> bool:
        """Return True for a right answer, however it is phrased."""
        if self.expect is not None:
            return fits_pattern(answer, self.expect)
        if self.number is not None:
            return fits_number(answer, self.number)
        if self.copied is not None:
            return fits_copy(answer, self.copied)
        if self.fields is not None:
            return fits_json(answer, self.fields)
        return self.code is not None and fits_code(answer, self.code.arguments, self.code.operator)


class Turn(BaseModel):
    """One question and answer of the conversation before a prompt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    answer: str


class ModelRule(BaseModel):
    """What a model must know: small models cannot answer everything when they are healthy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: str
    """Searched for in the model's name, without regard to case; the first rule that fits counts."""
    required: tuple[str, ...] | Literal["all"] = ()
    """Prompts that must be answered rightly."""
    left_out: tuple[str, ...] = ()
    """Prompts that are not asked."""
    min_pass_share: float = Field(default=0.0, ge=0.0, le=1.0)
    """Least share of the prompts asked that must be answered rightly."""
    calibrated: bool = False
    """True when healthy instances show first which prompts the model can answer."""


class Suite(BaseModel):
    """All prompts and rules of one version."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str = Field(min_length=1, max_length=50)
    turns: tuple[Turn, ...] = ()
    """The conversation before prompts that are asked fresh and cached."""
    least_prompts: int = Field(default=8, ge=1)
    """A calibration that leaves fewer says nothing about an instance."""
    prompts: tuple[Prompt, ...] = Field(min_length=1)
    models: tuple[ModelRule, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _know_what_is_named(self) -> "Suite":
        ids = [prompt.id for prompt in self.prompts]
        repeated = {name for name in ids if ids.count(name) > 1}
        if repeated:
            raise ValueError(f"prompts: ids used twice: {sorted(repeated)}")
        for rule in self.models:
            required = () if rule.required == "all" else rule.required
            unknown = {*required, *rule.left_out} - set(ids)
            if unknown:
                raise ValueError(f"models: {rule.pattern!r} names unknown prompts {unknown}")
        return self

    def rule_for(self, model: str) -> ModelRule:
        """Return the first rule that fits a model's name; without one, clean answers suffice."""
        fitting = (rule for rule in self.models if re.search(rule.pattern, model, re.IGNORECASE))
        return next(fitting, ModelRule(pattern=""))


class Way(StrEnum):
    """How a prompt is asked."""

    PLAIN = "plain"
    FRESH = "fresh"
    """After the conversation, with a salt of its own: nothing of it is in the prefix cache."""
    CACHED = "cached"
    """After the conversation, as it was asked before."""


@dataclass(frozen=True, slots=True)
class Asking:
    """One prompt, asked in one way."""

    prompt: Prompt
    way: Way = Way.PLAIN


def quick_askings(suite: Suite, left_out: Collection[str], rng: Random) -> list[Asking]:
    """Return a few prompts, in a random order; all of them where none is marked quick."""
    asked = [prompt for prompt in suite.prompts if prompt.id not in left_out]
    plain = [Asking(prompt) for prompt in asked if prompt.quick] or [*map(Asking, asked)]
    rng.shuffle(plain)
    return plain


def askings(suite: Suite, left_out: Collection[str], rng: Random) -> list[Asking]:
    """Return what one run asks, in a random order; fresh askings come before cached ones."""
    asked = [prompt for prompt in suite.prompts if prompt.id not in left_out]
    plain = [Asking(prompt) for prompt in asked]
    rng.shuffle(plain)
    fit = [prompt for prompt in asked if prompt.prefixed and suite.turns]
    paired = rng.sample(fit, min(PAIRS_PER_RUN, len(fit)))
    return [
        *plain,
        *(Asking(prompt, Way.FRESH) for prompt in paired),
        *(Asking(prompt, Way.CACHED) for prompt in paired),
    ]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one asking."""

    prompt_id: str
    matched: bool
    fault: str | None = None
    """The gate's reason, or what went wrong, when the answer itself is at fault."""
    refused: bool = False
    """True when the engine would not take the prompt, which says nothing about its answers."""
    busy: bool = False
    """True when the engine had no room for it, which says nothing at all."""
    way: Way = Way.PLAIN


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a suite."""

    passed: bool
    judged: bool
    """False when nothing is known about the instance; the details say why."""
    share: float
    threshold: float
    details: Mapping[str, Any]


def conclude(
    suite: Suite, model: str, answers: tuple[Answer, ...], dropped: Collection[str] = ()
) -> Result:
    """Judge a suite: no answer at fault, every required one right, and enough right overall."""
    rule = suite.rule_for(model)
    heard = [answer for answer in answers if not answer.busy]
    plain = [answer for answer in heard if answer.way is Way.PLAIN]
    faults = {answer.prompt_id: answer.fault for answer in heard if answer.fault}
    counted = [answer for answer in plain if answer.prompt_id not in dropped]
    wrong = {answer.prompt_id for answer in counted if not answer.matched}
    share = 1.0 - len(wrong) / len(counted) if counted else 0.0
    required = {one.id for one in suite.prompts} if rule.required == "all" else set(rule.required)
    failed = sorted(faults.keys() | (wrong & required)) + cache_signs(heard)
    passed = bool(counted) and not failed and share >= rule.min_pass_share
    details = {
        "suite_version": suite.version,
        "model": model[:200],
        "passed": len(counted) - len(wrong),
        "total": len(counted),
        "failed": failed if failed or passed else sorted(wrong),
        "faults": faults,
        "wrong": sorted(wrong),
        "prefix": compare_pairs(heard),
        "busy": len(answers) - len(heard),
        "dropped": sorted(dropped),
    }
    judged = bool(faults) or (bool(counted) and _is_heard(answers))
    return Result(passed and judged, judged, share, rule.min_pass_share, details)


def _is_heard(answers: tuple[Answer, ...]) -> bool:
    """Return True when something was answered, and the engine had room for half of it."""
    busy = sum(answer.busy for answer in answers)
    taken = any(not answer.refused and not answer.busy for answer in answers)
    return taken and busy * 2 <= len(answers)


def compare_pairs(answers: Collection[Answer]) -> dict[str, Any]:
    """Return which prompts were wrong only with a cached prefix, and which only with a fresh."""
    right = {
        way: {one.prompt_id for one in answers if one.way is way and one.matched and not one.fault}
        for way in Way
    }
    asked = {
        way: {one.prompt_id for one in answers if one.way is way and not one.refused} for way in Way
    }
    both = asked[Way.FRESH] & asked[Way.CACHED]
    return {
        "pairs": len(both),
        "cached_wrong": sorted((both & right[Way.FRESH]) - right[Way.CACHED]),
        "fresh_wrong": sorted((both & right[Way.CACHED]) - right[Way.FRESH]),
    }


def cache_signs(answers: Collection[Answer]) -> list[str]:
    """Return `prefix-cache` when what it holds spoils answers that are right without it."""
    wrong = compare_pairs(answers)["cached_wrong"]
    return ["prefix-cache"] if len(wrong) >= LEAST_CACHE_SIGNS else []


def load_suite(path: Path | None) -> Suite:
    """Read a suite, a file or a folder of files; None reads the one that comes with the agent.

    Raises:
        SettingsError: it cannot be read, or is no suite; the text names what is wrong.
    """
    source = path or OWN_SUITE
    try:
        return Suite.model_validate(_read(source))
    except OSError as error:
        raise SettingsError(
            f"GATEMESH_AGENT_PROBE_SUITE: {source} cannot be read ({error.strerror})"
        ) from error
    except ValidationError as error:
        words = words_of(error)
        raise SettingsError(f"GATEMESH_AGENT_PROBE_SUITE: {source} is wrong: {words}") from error
    except ValueError as error:
        raise SettingsError(f"GATEMESH_AGENT_PROBE_SUITE: {source} is wrong: {error}") from error


def _read(source: Path) -> dict[str, Any]:
    if not source.is_dir():
        return tomllib.loads(source.read_text(encoding="utf-8"))
    head = tomllib.loads((source / HEAD_FILE).read_text(encoding="utf-8"))
    prompts = list(head.pop("prompts", ()))
    for file in sorted(source.glob("*.toml")):
        if file.name != HEAD_FILE:
            prompts += tomllib.loads(file.read_text(encoding="utf-8")).get("prompts", ())
    return {**head, "prompts": prompts}
