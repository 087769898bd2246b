"""Compares an answer with a healthy instance's answer to the same request. Pure.

Tables of rules name differences that count (`rules.py`); what is open to choice is skipped, and
what hangs on wording is compared by meaning: a cosine that the caller measured.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gatemesh_common.gates import Judgement
from gatemesh_common.messages import CheckLevel, Outcome, Reason
from gatemesh_shadow.fields import Difference, call_differences, differences, parsed
from gatemesh_shadow.lexicon import OPEN
from gatemesh_shadow.overlap import normalised, shared, stems
from gatemesh_shadow.pair import Pair, PairLimits
from gatemesh_shadow.rules import (
    FACT_RULES,
    GREEDY_RULES,
    SAMPLED_RULES,
    TOPIC_RULES,
    Finding,
    first_finding,
)

GATE_VERSION = "1"
NOTED_FIELDS = 8
"""Differing fields named in a verdict."""
NOTED_CHARS = 80
"""Of the name of each: keys are the answer's own, and a broken one writes long ones."""

ALIKE_SHARE = 0.5
"""Share of words in common that makes two short answers the same."""


def judge_pair(
    request: Mapping[str, Any],
    primary_text: str,
    shadow_text: str,
    *,
    cosine: float | None = None,
    primary_calls: Sequence[Mapping[str, Any]] = (),
    shadow_calls: Sequence[Mapping[str, Any]] = (),
    split_gap_nats: float | None = None,
    limits: PairLimits | None = None,
) -> Judgement:
    """Judge an answer by a healthy one; without a cosine the meaning of prose is not compared.

    `split_gap_nats` is the gap at the first split of two greedy answers (`splits.first_split`);
    unknown, a split is not taken for a fault by itself.
    """
    pair = Pair(request, primary_text, shadow_text, cosine, limits or PairLimits())
    if primary_calls or shadow_calls:
        return _judge_fields(
            call_differences(primary_calls, shadow_calls, names_only=not pair.greedy), "tool_calls"
        )
    if normalised(primary_text) == normalised(shadow_text):
        return _passed({"measure": "text"}, 1.0)
    if not shadow_text.strip():
        return _skipped(Reason.NOT_COMPARABLE, "empty_second_answer")
    if (fields := _judge_json(pair)) is not None:
        return fields
    if pair.greedy and split_gap_nats is not None:
        return _judge_split(pair, split_gap_nats)
    return _judge_meaning(pair)


def needs_cosine(request: Mapping[str, Any], primary_text: str, shadow_text: str) -> bool:
    """True when the verdict depends on how alike the two texts are in meaning."""
    pair = Pair(request, primary_text, shadow_text)
    is_json = parsed(primary_text) is not None and parsed(shadow_text) is not None
    return not (is_json or pair.is_short or normalised(primary_text) == normalised(shadow_text))


def _judge_split(pair: Pair, gap_nats: float) -> Judgement:
    """Two greedy answers: a wide split is a fault, after a near-tie only the topic counts."""
    details = {"measure": "split", "gap_nats": round(gap_nats, 4)}
    if gap_nats > pair.limits.near_tie_nats:
        reason = Reason.FACTS_DIFFER if first_finding(FACT_RULES, pair) else Reason.ANSWERS_DIFFER
        return _failed(reason, gap_nats, pair.limits.near_tie_nats, details)
    finding = first_finding(TOPIC_RULES, pair)
    if finding:
        return _found(finding, details)
    return _judge_cosine(pair, details)


def _judge_meaning(pair: Pair) -> Judgement:
    rules = GREEDY_RULES if pair.greedy else SAMPLED_RULES
    finding = first_finding(rules, pair)
    if finding:
        return _found(finding, {})
    if not pair.greedy and OPEN.search(pair.question):
        return _skipped(Reason.NOT_COMPARABLE, "open_question")
    if pair.is_short:
        return _judge_short(pair)
    return _judge_cosine(pair, {})


def _judge_short(pair: Pair) -> Judgement:
    """Short answers in which no rule found a difference: equal words, or nothing to say."""
    words = stems(pair.first), stems(pair.second)
    alike = max(shared(words[0], words[1]), shared(words[1], words[0]))
    if alike >= ALIKE_SHARE and words[0] and words[1]:
        return _passed({"measure": "words"}, alike)
    return _skipped(Reason.TOO_SHORT, "short_answers")


def _judge_cosine(pair: Pair, details: Mapping[str, Any]) -> Judgement:
    if pair.cosine is None:
        return _skipped(Reason.NOT_COMPARABLE, "no_cosine", details)
    limits = pair.limits
    limit = limits.cosine_greedy if pair.greedy and not pair.has_code else limits.cosine_sampled
    noted = {"measure": "cosine", **details}
    if pair.cosine < limit:
        return _failed(Reason.ANSWERS_DIFFER, pair.cosine, limit, noted)
    return _passed(noted, pair.cosine, limit)


def _judge_json(pair: Pair) -> Judgement | None:
    first, second = parsed(pair.first), parsed(pair.second)
    if second is None:
        return None
    if first is None:
        wanted = str((pair.request.get("response_format") or {}).get("type", "")).startswith("json")
        return _judge_fields([Difference("", "type")], "json") if wanted else None
    found = differences(first, second)
    if not pair.greedy:
        found = [one for one in found if one.kind in ("missing", "type")]
    return _judge_fields(found, "json")


def _judge_fields(found: Sequence[Difference], measure: str) -> Judgement:
    details: dict[str, Any] = {"measure": measure}
    if not found:
        return _passed(details, 0.0)
    details["fields"] = [named(one) for one in found[:NOTED_FIELDS]]
    return _failed(Reason.FIELDS_DIFFER, float(len(found)), 0.0, details)


def named(difference: Difference) -> str:
    """Return how a difference is told: where, cut short, and of what kind."""
    return f"{difference.path[:NOTED_CHARS] or '.'}: {difference.kind}"


def _found(finding: Finding, details: Mapping[str, Any]) -> Judgement:
    reason, rule, score = finding
    return _failed(reason, score, None, {**details, "measure": "rules", "rule": rule})


def _failed(
    reason: Reason, score: float | None, limit: float | None, details: Mapping[str, Any]
) -> Judgement:
    return Judgement(
        CheckLevel.L4, Outcome.FAILED, reason, score=score, threshold=limit,
        gate_version=GATE_VERSION, details=details,
    )  # fmt: skip


def _passed(details: Mapping[str, Any], score: float, limit: float | None = None) -> Judgement:
    return Judgement(
        CheckLevel.L4, Outcome.PASSED, Reason.CLEAN, score=score, threshold=limit,
        gate_version=GATE_VERSION, details=details,
    )  # fmt: skip


def _skipped(reason: Reason, why: str, details: Mapping[str, Any] | None = None) -> Judgement:
    return Judgement(
        CheckLevel.L4, Outcome.SKIPPED, reason, gate_version=GATE_VERSION,
        details={"measure": "second_answer", **(details or {}), "why": why},
    )  # fmt: skip
