"""Labelled cases through the whole chain: L1 to L3 as the agent runs them, L4 on the healthy answer
of the case, L5 where the case is a probe. A gate that lacks its input abstains.
"""

import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.baseline_rules import BASELINES
from benchmarks.gate_inputs import InputError, need, pieces_of, read_lines

from gatemesh_agent.checking import judge_probe
from gatemesh_agent.gates.chain import GateChain
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.learning import baseline_of_pool
from gatemesh_agent.gates.pool_baseline import NO_BASELINE, PoolBaseline
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.saved import SavedError, steps_of_case
from gatemesh_common.messages import CheckLevel, Outcome
from gatemesh_shadow.compare import judge_pair

FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Result:
    """What the gates said about one answer."""

    failures: tuple[Judgement, ...]
    seconds: float = 0.0
    """Time of L1 to L3."""
    fired_at: int | None = None
    """Characters fed when the first failure was reported; None when only the end showed it."""

    def fails(self, up_to: str) -> bool:
        """Return True when a gate no dearer than this one failed."""
        return any(failure.gate <= up_to for failure in self.failures)

    def fails_at(self, gate: CheckLevel) -> bool:
        """Return True when this very gate failed."""
        return any(failure.gate is gate for failure in self.failures)


@dataclass(slots=True)
class Case:
    """One labelled answer and what came of it."""

    fields: Mapping[str, Any]
    result: Result

    @property
    def bad(self) -> bool:
        """True when the answer is labelled broken."""
        return bool(self.fields["expect"] == FAIL)

    @property
    def caught(self) -> bool:
        """True when its own gate, or a cheaper one, failed."""
        return self.result.fails(self.fields["gate"]) if self.bad else bool(self.result.failures)

    @property
    def text(self) -> str:
        """The answer."""
        return self.fields["response"].get("text") or ""

    @property
    def reason(self) -> str | None:
        """Why the engine stopped."""
        reason = self.fields["response"].get("finish_reason")
        return None if reason is None else str(reason)


def judge_case(fields: Mapping[str, Any], rng: random.Random, cosine: float | None = None) -> Case:
    """Feed one case to the gates in random pieces, its steps along with its text."""
    response = fields["response"]
    text = response.get("text") or ""
    steps = steps_of_case(response.get("logprobs") or (), "case")
    began = time.perf_counter()
    chain = GateChain(context_of(fields["request"]), baseline=baseline_of(fields))
    fired_at = None
    fed = taken = 0
    for piece in pieces_of(text, rng):
        found = chain.feed_text(piece)
        fed += len(piece)
        ready = 0
        while taken + ready < len(steps) and length_of(steps[: taken + ready + 1]) <= fed:
            ready += 1
        found += chain.feed_steps(steps[taken : taken + ready])
        taken += ready
        if found and fired_at is None:
            fired_at = fed
    chain.feed_steps(steps[taken:])
    judgements = chain.finish(response.get("finish_reason"), response.get("tool_calls") or ())
    seconds = time.perf_counter() - began
    dearer = (*shadow_judgements(fields, cosine), *probe_judgements(fields))
    return Case(fields, Result(failures_of((*judgements, *dearer)), seconds, fired_at))


def judge_file(path: Path, rng: random.Random, cosines: Mapping[str, float]) -> Iterable[Case]:
    """Judge every case of a file."""
    for number, fields in enumerate(read_lines(path), 1):
        need(path, number, fields, "request", "response", "expect", "gate")
        try:
            yield judge_case(fields, rng, cosines.get(str(fields.get("id"))))
        except (SavedError, AttributeError, TypeError, KeyError, ValueError) as error:
            raise InputError(f"{path}, line {number}: odd case ({error})") from error


def length_of(steps: Sequence[TokenStep]) -> int:
    """Return the characters of some steps."""
    return sum(len(step.text) for step in steps)


def failures_of(judgements: Iterable[Judgement]) -> tuple[Judgement, ...]:
    """Return the failures among some judgements."""
    return tuple(item for item in judgements if item.outcome is Outcome.FAILED)


@dataclass(frozen=True, slots=True)
class Score:
    """Precision, recall, F1 and the share of good answers that fail."""

    precision: float
    recall: float
    f1: float
    false_alarms: float

    def fields(self) -> dict[str, float]:
        """Return it as JSON fields."""
        return {
            "precision": round(self.precision, 4),
            "recall": round(self.recall, 4),
            "f1": round(self.f1, 4),
            "false_alarms": round(self.false_alarms, 4),
        }


def score(verdicts: Iterable[tuple[bool, bool]]) -> Score:
    """Score pairs of (labelled bad, said bad)."""
    counts = Counter(verdicts)
    hits, misses = counts[True, True], counts[True, False]
    alarms, good = counts[False, True], counts[False, True] + counts[False, False]
    precision = share(hits, hits + alarms)
    recall = share(hits, hits + misses)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return Score(precision, recall, f1, share(alarms, good))


def share(part: float, whole: float) -> float:
    """Return a share; none of nothing."""
    return part / whole if whole else 0.0


def in_l1_scope(case: Case) -> bool:
    """Return True for the cases by which L1 is scored."""
    return not case.bad or case.fields["gate"] == CheckLevel.L1


def lacks_input(case: Case) -> bool:
    """Return True where L3 abstains: it had no log probabilities."""
    return case.fields["gate"] == CheckLevel.L3 and not case.fields["response"].get("logprobs")


def score_cases(cases: Sequence[Case]) -> dict[str, Any]:
    """Return all figures of some cases."""
    scope = [case for case in cases if in_l1_scope(case)]
    chain = score((case.bad, case.caught) for case in cases).fields()
    return {
        "l1": score((case.bad, case.result.fails_at(CheckLevel.L1)) for case in scope).fields(),
        "chain": {name: chain[name] for name in ("recall", "false_alarms")},
        "gates": per_gate(cases),
        "by_kind": by_kind(cases),
        "baselines": {
            name: score((case.bad, rule(case.text, case.reason)) for case in scope).fields()
            for name, rule in BASELINES.items()
        },
        "onset_chars": latencies(cases),
        "ms_per_case": times(cases),
    }


def per_gate(cases: Sequence[Case]) -> dict[str, dict[str, float | int]]:
    """Return recall and false alarms of each gate; a gate without input abstains."""
    good = [case for case in cases if not case.bad]
    found: dict[str, dict[str, float | int]] = {}
    for level in CheckLevel:
        own = [case for case in cases if case.bad and case.fields["gate"] == level]
        judged = [case for case in own if not lacks_input(case)]
        alarms = sum(case.result.fails_at(level) for case in good)
        found[level.value] = {
            "cases": len(own),
            "recall": round(share(sum(case.caught for case in judged), len(judged)), 4),
            "false_alarms": round(share(alarms, len(good)), 4),
        }
    return found


def by_kind(cases: Sequence[Case]) -> dict[str, dict[str, Any]]:
    """Return how many of each kind failed, and which did not do as labelled."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        groups[str(case.fields.get("kind", "unnamed"))].append(case)
    return {kind: one_kind(group) for kind, group in sorted(groups.items())}


def one_kind(group: Sequence[Case]) -> dict[str, Any]:
    """Return the figures of one kind, whose cases are all broken or all fine as a rule."""
    found: dict[str, Any] = {"cases": len(group)}
    for name, bad in (("caught_share", True), ("false_alarm_share", False)):
        part = [case.caught for case in group if case.bad is bad]
        if part:
            found[name] = round(share(sum(part), len(part)), 4)
    found["wrong"] = [str(case.fields.get("id")) for case in group if case.caught != case.bad]
    return found


def latencies(cases: Sequence[Case]) -> dict[str, float | int]:
    """Return how many characters after the onset a gate fired."""
    known = [case for case in cases if case.bad and case.fields.get("onset") is not None]
    late = [
        case.result.fired_at - case.fields["onset"]
        for case in known
        if case.result.fired_at is not None and case.caught
    ]
    if not late:
        return {"cases": len(known), "fired": 0}
    return {
        "cases": len(known),
        "fired": len(late),
        "median": statistics.median(late),
        "max": max(late),
    }


def times(cases: Sequence[Case]) -> dict[str, float]:
    """Return the time per case in milliseconds."""
    spent = sorted(case.result.seconds * 1e3 for case in cases)
    if not spent:
        return {}
    return {"median": round(statistics.median(spent), 3), "max": round(spent[-1], 3)}


def baseline_of(fields: Mapping[str, Any]) -> PoolBaseline:
    """Return the baseline that a case brings along; an empty one when it brings none."""
    known = fields.get("baseline")
    return baseline_of_pool(known) if known else NO_BASELINE


def shadow_judgements(fields: Mapping[str, Any], cosine: float | None) -> tuple[Judgement, ...]:
    """Return what L4 says, where the case has a healthy answer."""
    shadow = fields.get("shadow_text")
    if shadow is None:
        return ()
    response = fields["response"]
    calls = response.get("tool_calls") or ()
    text = response.get("text") or ""
    return (judge_pair(fields["request"], text, shadow, cosine=cosine, primary_calls=calls),)


def probe_judgements(fields: Mapping[str, Any]) -> tuple[Judgement, ...]:
    """Return what L5 says, where the case is a probe."""
    accept = (fields.get("probe") or {}).get("accept")
    if accept is None:
        return ()
    response = fields["response"]
    found = judge_probe(
        accept, fields["request"], response.get("text") or "", response.get("finish_reason")
    )
    # A probe's own L1 faults are counted where L1 is.
    return (found,) if found.gate is CheckLevel.L5 else ()
