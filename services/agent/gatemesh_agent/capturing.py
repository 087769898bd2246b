"""Makes a capture of a window: its figures, and as much text as the policy allows. Pure."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gatemesh_agent.capture_window import Piece, shown_pieces, step_of
from gatemesh_agent.recent import Running, Window
from gatemesh_agent.requests import prompt_in
from gatemesh_agent.traffic import Exchange
from gatemesh_agent.transcript import MOST_CHARS
from gatemesh_common.capture_fields import fields_of
from gatemesh_common.captures import (
    Capture,
    CaptureTerms,
    CaptureTexts,
    TextPolicy,
    TextWithheld,
)
from gatemesh_common.redaction import Cut, Redactor, RuleUnusableError, told, told_between
from gatemesh_common.shortening import shortened

SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p", "typical_p", "seed", "n", "best_of", "stream"),
    *("max_tokens", "max_completion_tokens", "max_output_tokens", "min_tokens", "ignore_eos"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty", "length_penalty"),
    *("use_beam_search", "logprobs", "top_logprobs", "priority"),
)
"""Fields of a request that say in numbers how tokens are picked; words are text and stay."""
LONGEST_TOKEN_BYTES = 400
STOPPED = "stop"
MOST_NUMBER = 1e15
STEP_BYTES = 4096
"""Of a step with its 20 likeliest tokens, once it is read."""


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms captures are taken."""

    told: CaptureTerms
    redactor: Redactor | None
    """None where a rule cannot be used: then no text leaves."""

    @classmethod
    def of(cls, told: CaptureTerms) -> "Terms":
        """Return the terms that the manager told."""
        try:
            return cls(told, Redactor(told.builtin_rules, told.rules))
        except RuleUnusableError:
            return cls(told, None)

    @property
    def text(self) -> TextPolicy:
        """How much text may leave."""
        return self.told.text


@dataclass(frozen=True, slots=True)
class Subject:
    """A window, the request that it is of, and what the choice said until it was closed."""

    window: Window
    exchange: Exchange
    said: tuple[str, ...] | None = None
    """Pieces of the choice's text from its beginning; None where no text may leave."""
    finish_reason: str | None = None

    @property
    def held_bytes(self) -> int:
        """About how much it keeps in memory: the request, its events, and what was said."""
        window, said = self.window, self.said or ()
        events = (*window.before, *window.after)
        told = sum(len(event) for event in events if isinstance(event, bytes))
        if len(events) > sum(isinstance(event, bytes) for event in events):
            # A whole answer came as fields.
            told += window.seen.chars + STEP_BYTES * window.seen.steps
        # The body is kept as it came, and read.
        return 2 * len(self.exchange.request.asked.raw) + told + sum(map(len, said))


@dataclass(frozen=True, slots=True)
class Place:
    """Who takes captures, and where the engine stands."""

    agent_id: str
    pool: str
    labels: Mapping[str, str] = field(default_factory=dict)
    engine_version: str | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """What of the text a capture carries."""

    texts: CaptureTexts | None = None
    redactions: Mapping[str, int] = field(default_factory=dict)
    withheld: TextWithheld | None = None


def capture_of(subject: Subject, terms: Terms, place: Place) -> Capture:
    """Return the capture of a window.

    Raises:
        ValueError: something in it cannot travel.
    """
    window, exchange = subject.window, subject.exchange
    verdict, body = window.verdict, exchange.request.asked.body or {}
    pieces = shown_pieces(window)
    words = words_of(subject, pieces, terms)
    return Capture(
        **fields_of(verdict),
        pool=place.pool,
        agent_id=place.agent_id,
        model=model_of(body),
        engine_version=place.engine_version,
        labels=dict(place.labels),
        finish_reason=subject.finish_reason and subject.finish_reason[:50],
        sampling=sampling_of(body),
        gates=finite(window.running),
        steps=tuple(step_of(piece, verdict.span) for piece in pieces),
        steps_seen=window.seen.steps,
        chars_seen=window.seen.chars,
        text_policy=terms.text,
        text_withheld=words.withheld,
        texts=words.texts,
        redactions=dict(words.redactions),
    )


def finite(running: Running) -> dict[str, dict[str, float]]:
    """Return the figures that are numbers, of gates that have any."""
    known = {
        gate: {name: value for name, value in figures.items() if math.isfinite(value)}
        for gate, figures in running.items()
    }
    return {gate: figures for gate, figures in known.items() if figures}


def words_of(subject: Subject, pieces: Sequence[Piece], terms: Terms) -> Words:
    """Return the text that may leave: all of it is redacted before any of it is cut out."""
    if terms.text == "none":
        return Words()
    why = why_withheld(subject, terms)
    if why is not None or terms.redactor is None:
        return Words(withheld=why)
    try:
        return allowed_words(subject, pieces, terms, terms.redactor)
    except RuleUnusableError:
        return Words(withheld="rule_unusable")


def why_withheld(subject: Subject, terms: Terms) -> TextWithheld | None:
    """Return why text cannot be told that the policy allows; None when it can."""
    reasons: tuple[tuple[bool, TextWithheld], ...] = (
        # The policy came after the window was closed.
        (subject.said is None, "late"),
        (terms.redactor is None, "rule_unusable"),
        (subject.window.seen.chars > MOST_CHARS, "too_long"),
    )
    return next((why for is_so, why in reasons if is_so), None)


def allowed_words(
    subject: Subject, pieces: Sequence[Piece], terms: Terms, redactor: Redactor
) -> Words:
    """Return what the policy allows.

    Raises:
        RuleUnusableError: a rule took too long.
    """
    answer = "".join(subject.said or ())
    found = redactor.find(answer, Cut(after=subject.finish_reason != STOPPED))
    tokens = [told_between(answer, one.start, one.end, found) for one in pieces]
    most, whole = terms.told.max_bytes, terms.text == "full"
    small, cut = fitting(tokens, most // 3 if whole else most)
    if not whole:
        begin, end = (pieces[0].start, pieces[-1].end) if pieces else (0, 0)
        counts = Counter(one.name for one in found if one.start < end and one.end > begin)
        return Words(CaptureTexts(tokens=small, is_cut=cut), counts)
    body = subject.exchange.request.asked.body or {}
    asked = redactor.redact_ends("\n\n".join(prompt_words(prompt_in(body))))
    said = told(answer, found)
    texts = CaptureTexts(
        tokens=small,
        answer=shortened(said, most // 3),
        prompt=shortened(asked.text, most // 3),
        is_cut=cut
        or most // 3 < max(len(one.encode("utf-8", "replace")) for one in (said, asked.text)),
    )
    return Words(texts, asked.counts + Counter(one.name for one in found))


def fitting(tokens: Sequence[str], most_bytes: int) -> tuple[tuple[str, ...], bool]:
    """Return tokens that are no more than may travel, and whether something was cut."""
    small = tuple(shortened(token, LONGEST_TOKEN_BYTES) for token in tokens)
    if len("".join(small).encode()) > most_bytes:
        small = tuple(shortened(token, most_bytes // len(small)) for token in small)
    return small, any(len(after) < len(before) for before, after in zip(tokens, small, strict=True))


def prompt_words(value: object) -> Iterator[str]:
    """Yield the words of a prompt of any route; pictures, sound and token ids have none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from prompt_words(each)
    elif isinstance(value, Mapping):
        role = f"{value['role']}: " if isinstance(value.get("role"), str) else ""
        said = [word for name in SPEAKING for word in prompt_words(value.get(name))]
        if said:
            yield role + "\n".join(said)


SPEAKING = ("content", "text", "reasoning_content", "tool_calls", "function", "arguments", "output")
"""Fields of a message, or of a part of one, that are words or hold them."""


def model_of(body: Mapping[str, Any]) -> str | None:
    """Return the model that was asked for."""
    model = body.get("model")
    return model[:200] if isinstance(model, str) else None


def sampling_of(body: Mapping[str, Any]) -> dict[str, float | bool]:
    """Return the numbers of a request by which tokens are picked."""
    found = {name: body.get(name) for name in SAMPLING}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, bool)
        or (isinstance(value, int | float) and -MOST_NUMBER < value < MOST_NUMBER)
    }
