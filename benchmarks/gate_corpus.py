"""Recorded answers of a real engine through the gates: each alone, and each file as one life.

L2's baseline is learnt from the clean answers; these are judged by what the other half of the
prompts gave. L4 compares greedy answers with the clean ones of the same request.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.gate_cases import failures_of, share
from benchmarks.gate_inputs import InputError, need, read_lines

from gatemesh_agent.gates.chain import GateChain
from gatemesh_agent.gates.context import context_of
from gatemesh_agent.gates.drift import LifeDrift, PoolDrift
from gatemesh_agent.gates.learning import Learner
from gatemesh_agent.gates.pool_baseline import NO_BASELINE, PoolBaseline
from gatemesh_agent.gates.refusal import is_nan_refusal
from gatemesh_agent.saved import SavedChoice, SavedError, read_recorded
from gatemesh_agent.saved_judging import judge_choice
from gatemesh_common.messages import CheckLevel
from gatemesh_shadow.compare import judge_pair

HEALTHY = "clean"
SAME_PROMPT_ONCE = 6
"""Failures of distinct prompts after which condition A acts."""
Line = Mapping[str, Any]


@dataclass(slots=True)
class Judged:
    """What the gates said about one recorded answer."""

    gates: set[str] = field(default_factory=set)
    hard: bool = False
    drifts: bool = False
    """True when only the whole life speaks against it."""
    text: str = ""


def judge_answer(
    line: Line,
    vocab_size: int | None,
    baseline: PoolBaseline = NO_BASELINE,
    drift: LifeDrift | None = None,
) -> Judged:
    """Judge one recorded answer by the inline gates."""
    body = line["body"] or ""
    if line["status"] != 200:
        refused = is_nan_refusal(line["status"], body.encode())
        return Judged({CheckLevel.L3.value} if refused else set(), refused)
    judged = Judged()
    for choice in choices_of(line):
        chain = GateChain(
            context_of(line["request"]),
            vocab_size,
            baseline=baseline,
            drift=drift,
            fingerprint=fingerprint_of(line),
        )
        failures = judge_choice(choice, chain).failures
        judged.text += choice.text
        judged.gates |= {failure.gate.value for failure in failures}
        judged.hard |= any(failure.hard for failure in failures)
        judged.drifts |= [failure.reason for failure in failures] == ["drift"]
    return judged


def fingerprint_of(line: Line) -> str:
    """Return what tells prompts apart."""
    messages = line["request"].get("messages", line["request"].get("prompt"))
    return hashlib.sha256(json.dumps(messages).encode()).hexdigest()


def choices_of(line: Line) -> tuple[SavedChoice, ...]:
    """Return the choices of a recorded answer, as the agent reads them."""
    return read_recorded({**line, "body": line["body"] or ""}, "a recorded answer").choices


@dataclass(frozen=True, slots=True)
class Learnt:
    """What the clean answers teach."""

    whole: PoolBaseline
    halves: tuple[PoolBaseline, PoolBaseline]
    """Learnt from the prompts with an even, and an odd hash."""
    answers: Mapping[str, str]
    """Text of the clean greedy answer by request."""

    def baseline_for(self, line: Line, *, healthy: bool) -> PoolBaseline:
        """Return a baseline that this very prompt did not shape, if the answer is clean."""
        return self.halves[1 - half_of(line)] if healthy else self.whole


def half_of(line: Line) -> int:
    """Return 0 or 1, by the prompt alone."""
    return int(fingerprint_of(line)[-1], 16) % 2


def request_key(line: Line) -> str:
    """Return what two answers to the same request have in common."""
    return json.dumps(line["request"], sort_keys=True)


def learn(lines: Sequence[Line]) -> Learnt:
    """Learn from clean answers."""
    texts = {
        request_key(line): judge_answer(line, None).text
        for line in lines
        if line["request"].get("temperature") == 0 and line["status"] == 200
    }
    halves = [[line for line in lines if half_of(line) == half] for half in (0, 1)]
    return Learnt(baseline_from(lines), (baseline_from(halves[0]), baseline_from(halves[1])), texts)


def baseline_from(lines: Sequence[Line]) -> PoolBaseline:
    """Return what is normal by these answers, some dozens of each kind; a manager wants 50."""
    learner = Learner()
    for line in lines:
        for choice in choices_of(line):
            chain = GateChain(context_of(line["request"]))
            judge_choice(choice, chain)
            if chain.usual is not None:
                learner.add(chain.usual)
    return learner.baseline()


def measure_corpus(folder: Path, vocab_size: int | None) -> dict[str, dict[str, Any]]:
    """Judge every recorded answer of a folder, by variant."""
    paths = sorted(folder.glob("*.jsonl.gz")) + sorted(folder.glob("*.jsonl"))
    if not paths:
        raise InputError(f"{folder} holds no *.jsonl.gz; give the folder of the recorded answers")
    lines = {path.name.split(".jsonl")[0]: checked_lines(path) for path in paths}
    try:
        learnt = learn(lines.get(HEALTHY, []))
    except (SavedError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise InputError(f"{folder}, {HEALTHY}: odd response ({error})") from error
    return {
        path.name.split(".jsonl")[0]: measure_variant(path, found, learnt, vocab_size)
        for path, found in zip(paths, lines.values(), strict=True)
    }


def checked_lines(path: Path) -> list[Line]:
    """Return the answers of one file."""
    found: list[Line] = list(read_lines(path))
    for number, line in enumerate(found, 1):
        need(path, number, line, "request", "status", "body")
    return found


def measure_variant(
    path: Path, lines: Sequence[Line], learnt: Learnt, vocab_size: int | None
) -> dict[str, Any]:
    """Judge the answers of one file, in order, as those of one life."""
    healthy = path.name.split(".")[0] == HEALTHY
    life = PoolDrift().of(path.name)
    judged: list[tuple[Line, Judged]] = []
    for number, line in enumerate(lines, 1):
        try:
            baseline = learnt.baseline_for(line, healthy=healthy)
            found = judge_answer(line, vocab_size, baseline, life)
        except (SavedError, ValueError, AttributeError, TypeError) as error:
            raise InputError(f"{path}, line {number}: odd response ({error})") from error
        if not healthy:
            compare(line, found, learnt)
        judged.append((line, found))
    return figures_of(judged, healthy=healthy)


def compare(line: Line, judged: Judged, learnt: Learnt) -> None:
    """Add what L4 says of a greedy answer."""
    clean = learnt.answers.get(request_key(line))
    if clean is None or line["status"] != 200:
        return
    found = judge_pair(line["request"], judged.text, clean)
    if failures_of([found]):
        judged.gates.add(found.gate.value)


INLINE = {CheckLevel.L1.value, CheckLevel.L2.value, CheckLevel.L3.value}


def figures_of(judged: Sequence[tuple[Line, Judged]], *, healthy: bool) -> dict[str, Any]:
    """Return the figures of one variant."""
    total = len(judged)
    caught = [bool(found.gates & INLINE) for _, found in judged]
    by_gate = Counter(gate for _, found in judged for gate in found.gates)
    alone = sum(one and not found.drifts for one, (_, found) in zip(caught, judged, strict=True))
    rate = round(share(sum(caught), total), 4)
    return {
        "answers": total,
        "caught_share": 0.0 if healthy else rate,
        "false_alarm_share": rate if healthy else 0.0,
        "hard_share": round(share(sum(found.hard for _, found in judged), total), 4),
        "alone_share": round(share(alone, total), 4),
        "with_shadow_share": round(share(sum(bool(found.gates) for _, found in judged), total), 4),
        "first_failure_after": next((at for at, one in enumerate(caught, 1) if one), None),
        "acted_after": acted_after(judged),
        "by_gate": {gate: round(share(count, total), 4) for gate, count in sorted(by_gate.items())},
    }


def acted_after(judged: Sequence[tuple[Line, Judged]]) -> int | None:
    """Return the answers until the shipped conditions take the instance out, by inline gates."""
    prompts: set[str] = set()
    for at, (line, found) in enumerate(judged, 1):
        if found.hard:
            return at
        if found.gates & {CheckLevel.L1.value, CheckLevel.L2.value}:
            prompts.add(fingerprint_of(line))
        if len(prompts) >= SAME_PROMPT_ONCE:
            return at
    return None
