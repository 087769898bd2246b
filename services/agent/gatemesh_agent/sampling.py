"""Which answers go to the shadow to be compared, and what of them goes. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Literal

from gatemesh_agent.after import Answered
from gatemesh_common.messages import Attribution, ShadowSample, Verdict
from gatemesh_common.rates import Bucket

Cause = Literal["random", "suspicion", "header"]
SUSPICIOUS = 0.5
"""How far towards a loop an answer must be for its instance's samples to become more."""
MOST_FLAGGED = 10_000


@dataclass(frozen=True, slots=True)
class SampleTerms:
    """How many answers go to the shadow."""

    share: float = 0.05
    share_suspect: float = 1.0
    per_s: float = 20.0
    """Most samples in a second, whatever their cause; 0 sends none."""
    max_bytes: int = 256 * 2**10
    """Largest request and answer together."""
    flagged_s: float = 60.0
    """Time for which a failed gate raises the share of its instance."""


class Sampling:
    """Decides for each answer whether it goes to the shadow, and why."""

    def __init__(self, terms: SampleTerms, rng: Random, is_suspect: Callable[[str], bool]) -> None:
        self._terms = terms
        self._rng = rng
        self._is_suspect = is_suspect
        self._bucket = Bucket(terms.per_s, max(terms.per_s, 1.0) if terms.per_s else 0.0)
        self._flagged: dict[str, float] = {}
        self.least_share: Callable[[str | None], float] = no_share
        """Share that the pool wants of a model version; the larger of it and the setting counts."""

    def heed(self, verdict: Verdict, now_s: float) -> None:
        """Raise the share of an instance that a gate holds something against."""
        if verdict.attribution is Attribution.REQUEST:
            return
        if len(self._flagged) >= MOST_FLAGGED:
            self._flagged.clear()
        self._flagged[verdict.instance_id] = now_s

    def cause_of(self, answer: Answered, now_s: float) -> Cause | None:
        """Return why an answer goes to the shadow; None when it does not."""
        # Few are wanted: whether they can be compared is looked at last.
        cause = self._wanted(answer, now_s) if self._terms.per_s else None
        return cause if cause and is_comparable(answer, self._terms.max_bytes) else None

    def has_room(self, now_s: float) -> bool:
        """Return True and count a sample while fewer went in the last second than may."""
        return self._bucket.take(now_s)

    def _wanted(self, answer: Answered, now_s: float) -> Cause | None:
        if answer.wants_shadow:
            return "header"
        if any(each.hard for each in answer.failures):
            # Proof needs no second witness.
            return None
        if answer.failures:
            return "suspicion"
        if self._suspects(answer, now_s) and self._rng.random() < self._terms.share_suspect:
            return "suspicion"
        share = max(self._terms.share, self.least_share(answer.life.model_version))
        return "random" if self._rng.random() < share else None

    def _suspects(self, answer: Answered, now_s: float) -> bool:
        instance_id = answer.life.instance_id
        flagged_s = self._flagged.get(instance_id)
        lately = flagged_s is not None and now_s - flagged_s <= self._terms.flagged_s
        return lately or answer.first.suspicion >= SUSPICIOUS or self._is_suspect(instance_id)


def no_share(_model_version: str | None) -> float:
    """Return that the pool wants none in particular."""
    return 0.0


def is_comparable(answer: Answered, max_bytes: int) -> bool:
    """Return True for a whole answer to words, not too large to be sent."""
    first, asked = answer.first, answer.request.asked
    if not first.is_whole or asked.body is None:
        return False
    if len(asked.raw) + first.chars > max_bytes:
        return False
    return not has_other_media(asked.body)


def has_other_media(body: Mapping[str, Any]) -> bool:
    """Return True when a prompt holds pictures or sound beside its words."""
    messages = body.get("messages", body.get("input"))
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        return False
    contents = (each.get("content") for each in messages if isinstance(each, Mapping))
    parts = (part for content in contents if isinstance(content, list) for part in content)
    return any(isinstance(part, Mapping) and not is_words(part) for part in parts)


def is_words(part: Mapping[str, Any]) -> bool:
    """Return True for a part of a message that is text, or a tool's call or result."""
    return isinstance(part.get("text"), str) or "tool" in str(part.get("type", ""))


def sample_of(
    answer: Answered, cause: Cause, agent_id: str, pool: str, now: datetime
) -> ShadowSample:
    """Return the message that carries an answer to the shadow.

    Raises:
        ValueError: something in it cannot travel.
    """
    first, life, origin = answer.first, answer.life, answer.request.origin
    ids = first.known_ids()
    return ShadowSample(
        timestamp=now,
        traceparent=origin.trace,
        pool=pool,
        instance_id=life.instance_id,
        agent_id=agent_id,
        incarnation=life.incarnation if life.numbered else None,
        model_version=life.model_version,
        request_id=origin.request_id,
        path=str(answer.request.asked.route),
        request=dict(answer.request.asked.body or {}),
        text=first.text,
        tool_calls=tuple(dict(call) for call in first.calls),
        finish_reason=first.finish_reason,
        token_ids=ids,
        logprobs=tuple(first.logprobs) if ids is not None else None,
        decoding=origin.decoding,
        prompt_fingerprint=origin.prompt_fingerprint,
        tenant=origin.tenant,
        cause=cause,
    )
