"""Two answers to one request, and what comparing them needs to know of them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gatemesh_shadow.facts import Facts, facts_of
from gatemesh_shadow.lexicon import CLOSED, OPEN
from gatemesh_shadow.overlap import is_code, words_of


@dataclass(frozen=True, slots=True)
class PairLimits:
    """Where a difference begins to count."""

    cosine_greedy: float = 0.55
    """Least cosine of two answers at temperature 0. Source: 20 pairs of equal meaning had 0.53-0.97
    with the default model, 20 of different meaning at most 0.64."""
    cosine_sampled: float = 0.05
    """The same where tokens were drawn: two honest answers may take different sides of a thing.
    Source: 15 healthy pairs of a 135M model at temperature 1 had 0.09-0.88."""
    near_tie_nats: float = 0.5
    """Largest gap at a split that is rounding. Source: between healthy replicas at most 0.25."""
    short_words: int = 12
    """Up to so many words an answer is compared as text."""
    likeness: float = 0.72
    """Least likeness of two sentences whose facts are compared."""
    topic_share: float = 0.08
    """Share of words in common below which two texts have different topics."""
    topic_words: int = 10
    """Least content words for a topic."""
    echo_share: float = 0.9
    """Share of an answer's words that makes it an echo of the prompt."""


@dataclass(frozen=True)
class Pair:
    """One request and the two answers, with what the rules ask of them."""

    request: Mapping[str, Any]
    first: str
    second: str
    cosine: float | None = None
    limits: PairLimits = field(default_factory=PairLimits)

    @cached_property
    def greedy(self) -> bool:
        """True at temperature 0; the default temperature is 1."""
        return self.request.get("temperature") == 0

    @cached_property
    def prompt(self) -> str:
        """All that was asked, joined."""
        return prompt_of(self.request)

    @cached_property
    def question(self) -> str:
        """What was asked last."""
        return question_of(self.request)

    @cached_property
    def is_closed(self) -> bool:
        """True for a question with one right answer."""
        return bool(CLOSED.search(self.question)) and not OPEN.search(self.question)

    @cached_property
    def is_short(self) -> bool:
        """True when both answers are short enough to be compared as text."""
        limit = self.limits.short_words
        return max(length_of(self.first), length_of(self.second)) <= limit

    @cached_property
    def facts(self) -> tuple[Facts, Facts]:
        """What either answer claims."""
        return facts_of(self.first), facts_of(self.second)

    @cached_property
    def has_code(self) -> bool:
        """True when either answer is a program."""
        return is_code(self.first) or is_code(self.second)


def prompt_of(request: Mapping[str, Any]) -> str:
    """All texts of a request, joined."""
    texts = [_text(one.get("content")) for one in _messages(request)]
    return "\n".join([*texts, _text(request.get("prompt"))]).strip()


def question_of(request: Mapping[str, Any]) -> str:
    """The last text of the user, or the prompt."""
    asked = [_text(one.get("content")) for one in _messages(request) if one.get("role") == "user"]
    return asked[-1] if asked else _text(request.get("prompt"))


def _messages(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = request.get("messages") or request.get("input") or ()
    if isinstance(found, str):
        return [{"role": "user", "content": found}]
    return [one for one in found if isinstance(one, Mapping)]


def _text(content_: object) -> str:
    if isinstance(content_, str):
        return content_
    parts = content_ if isinstance(content_, list) else []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))


def length_of(text: str) -> int:
    """Words; an ideograph counts half."""
    words = words_of(text)
    return sum(2 if len(word) > 1 or word.isascii() else 1 for word in words) // 2
