"""Two answers that were found to differ, side by side: by policy, redacted, and few."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from gatemesh_common.capture_fields import fields_of
from gatemesh_common.capture_limits import CaptureLimits
from gatemesh_common.captures import Capture, CaptureTerms, CaptureTexts
from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import Message, ShadowSample, Verdict
from gatemesh_common.redaction import Cut, Found, Redactor, RuleUnusableError, told_between
from gatemesh_common.shortening import shortened
from gatemesh_shadow.metrics import CAPTURES
from gatemesh_shadow.pair import prompt_of

log = logging.getLogger(__name__)

AROUND_CHARS = 200
"""Before and after the first difference, where only the window may be told."""
MOST_POOLS = 1000
FINISHED = "stop"


class PairCaptures:
    """Publishes the two answers of a failed comparison; what the broker does not take is dropped.

    A pool whose terms were not heard has none published.
    """

    def __init__(
        self, publish: Callable[[Message], Awaitable[None]], shadow_id: str, rng: Random
    ) -> None:
        self._publish = publish
        self._shadow_id = shadow_id
        self._rng = rng
        self._terms: dict[str, tuple[CaptureTerms, CaptureLimits]] = {}

    def hear(self, terms: CaptureTerms) -> None:
        """Take over the terms of a pool; the same ones again leave its rates as they are."""
        known = self._terms.get(terms.pool)
        if known is not None and known[0].is_as(terms):
            return
        if len(self._terms) < MOST_POOLS or known is not None:
            self._terms[terms.pool] = (terms, CaptureLimits(terms, self._rng))

    async def take(self, sample: ShadowSample, verdict: Verdict, second: str, judge: str) -> None:
        """Publish what the policy of the sample's pool allows; never raises for what it cannot."""
        terms, limits = self._terms.get(sample.pool, (None, None))
        if terms is None or limits is None or terms.text == "none":
            return
        if limits.refuse(verdict, time.monotonic()) is not None:
            CAPTURES.labels(outcome="rate").inc()
            return
        try:
            capture = await asyncio.to_thread(
                pair_capture, sample, verdict, second, judge, terms, self._shadow_id
            )
            await self._publish(capture)
        except (RuleUnusableError, GatemeshError) as error:
            CAPTURES.labels(outcome=type(error).__name__).inc()
            log.info("capture_dropped", extra={"error": type(error).__name__})
        else:
            CAPTURES.labels(outcome="sent").inc()


def pair_capture(  # noqa: PLR0917 (a thread takes them by place)
    sample: ShadowSample,
    verdict: Verdict,
    second: str,
    judge: str,
    terms: CaptureTerms,
    shadow_id: str,
) -> Capture:
    """Return both answers as far as the policy allows.

    Raises:
        RuleUnusableError: a rule cannot be used.
    """
    texts, redactions = pair_texts(sample, second, terms)
    return Capture(
        **fields_of(verdict),
        pool=sample.pool,
        agent_id=shadow_id,
        source="shadow",
        finish_reason=sample.finish_reason,
        chars_seen=len(sample.text),
        text_policy=terms.text,
        texts=texts,
        redactions=dict(redactions),
        second_instance_id=judge,
    )


def pair_texts(
    sample: ShadowSample, second: str, terms: CaptureTerms
) -> tuple[CaptureTexts, Counter[str]]:
    """Return the texts, redacted as a whole before anything is cut out, and what was struck.

    Raises:
        RuleUnusableError: a rule cannot be used.
    """
    redactor = Redactor(terms.builtin_rules, terms.rules)
    # A second answer is asked for no more tokens than the first one had.
    ends = (Cut(after=sample.finish_reason != FINISHED), Cut(after=True))
    answers = (sample.text, second)
    if terms.text == "full":
        first, other = map(redactor.redact, answers, ends)
        asked = redactor.redact_ends(prompt_of(sample.request))
        struck = asked.counts + first.counts + other.counts
        return fitting(asked.text, first.text, other.text, terms.max_bytes), struck
    at = first_difference(*answers)
    struck = Counter()
    answer, second_answer = (
        around(text, at, redactor.find(text, end), struck)
        for text, end in zip(answers, ends, strict=True)
    )
    texts = fitting(None, answer, second_answer, terms.max_bytes)
    return texts.model_copy(update={"is_cut": True}), struck


def fitting(prompt: str | None, answer: str, second_answer: str, most_bytes: int) -> CaptureTexts:
    """Return texts that are no more than may travel."""
    parts = {"prompt": prompt, "answer": answer, "second_answer": second_answer}
    small = {
        name: shortened(part, most_bytes // 3) for name, part in parts.items() if part is not None
    }
    return CaptureTexts(**small, is_cut=any(small[name] != parts[name] for name in small))


def first_difference(first: str, second: str) -> int:
    """Return where two texts part."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((n for n, (one, other) in pairs if one != other), min(len(first), len(second)))


def around(text: str, at: int, found: Sequence[Found], struck: Counter[str]) -> str:
    """Return the part of a text around a place, and count what was struck there."""
    begin, end = max(0, at - AROUND_CHARS), min(len(text), at + AROUND_CHARS)
    struck.update(one.name for one in found if one.start < end and one.end > begin)
    return told_between(text, begin, end, found)
