"""The gate: flags requests and answers that hold a listed phrase, or that a classifier minds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from gatemesh_common.gates import Ending, GateRequest, Judgement, TokenStep
from gatemesh_common.messages import CheckLevel, Outcome, Reason, Span
from gatemesh_moderation.classifier import MOST_CHARS, Classifier, load_classifier
from gatemesh_moderation.matching import Match, Phrases, Search
from gatemesh_moderation.wordlists import OWN_FOLDER, ListError, read_lists

DEFAULTS = {
    "request_lists": "keywords+injection",
    "answer_lists": "keywords",
    "folder": "",
    "classifier": "",
    "classifier_threshold": "0.5",
}
"""The gate's settings; `none` names no list, `+` joins several."""

VERSION = "1"
OUR_ROLES = ("system", "developer", "assistant")
"""Roles whose words are not the client's user's: a system prompt may name what it forbids."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is looked for."""

    request: Phrases
    answer: Phrases
    classifier: Classifier | None


def open_gate(request: GateRequest) -> "ModerationGate":
    """Return the gate of one choice.

    Raises:
        ValueError: a setting or a list cannot be used.
    """
    return ModerationGate(rules_of(tuple(sorted(request.settings.items()))), request)


@lru_cache(maxsize=8)
def rules_of(settings: tuple[tuple[str, str], ...]) -> Rules:
    """Return the rules of some settings; they are read once.

    Raises:
        ValueError: a setting or a list cannot be used.
    """
    unknown = [name for name, _ in settings if name not in DEFAULTS]
    if unknown:
        raise ListError(f"there is no setting {unknown[0]!r}; known: {', '.join(DEFAULTS)}")
    told = DEFAULTS | dict(settings)
    folders = [OWN_FOLDER, *([Path(told["folder"])] if told["folder"] else [])]
    return Rules(
        Phrases(read_lists(names_in(told["request_lists"]), folders)),
        Phrases(read_lists(names_in(told["answer_lists"]), folders)),
        load_classifier(told["classifier"], told["classifier_threshold"]),
    )


def names_in(text: str) -> list[str]:
    """Return the lists that a setting names."""
    return [name for part in text.split("+") if (name := part.strip()) and name != "none"]


class ModerationGate:
    """Judges the words of one request and of one choice of its answer."""

    def __init__(self, rules: Rules, request: GateRequest) -> None:
        self._rules = rules
        self._request = request
        self._search = Search(rules.answer)
        self._kept: list[str] = []
        self._chars = 0
        self._failure: Judgement | None = None

    def judge_request(self) -> Judgement | None:
        """Return the failure that the request itself is."""
        text = words_of(self._request)
        matches = self._rules.request.matches(text)
        return flagged(matches[0]) if matches else self._classified(text)

    def feed_text(self, delta: str) -> Judgement | None:
        """Take the next piece of the answer; return the failure that it proves, once."""
        if self._failure is not None:
            return None
        if self._rules.classifier is not None and self._chars < MOST_CHARS:
            self._kept.append(delta)
        self._chars += len(delta)
        return self._noted(self._search.feed(delta))

    def feed_steps(self, _steps: Sequence[TokenStep]) -> Judgement | None:
        """Steps say nothing about words."""
        return None

    def finish(self, _ending: Ending) -> Judgement:
        """Conclude: by the end of the text, then by the classifier."""
        found = self._failure or self._noted(self._search.end())
        found = found or self._classified("".join(self._kept))
        if found is not None:
            return found
        if not self._chars:
            return concluded(Outcome.SKIPPED, Reason.EMPTY)
        return concluded(Outcome.PASSED, Reason.CLEAN)

    def _noted(self, matches: Sequence[Match]) -> Judgement | None:
        if matches:
            self._failure = flagged(matches[0])
        return self._failure

    def _classified(self, text: str) -> Judgement | None:
        classifier = self._rules.classifier
        if classifier is None or not text:
            return None
        score = classifier.score(text)
        if score < classifier.threshold:
            return None
        return Judgement(
            CheckLevel.PLUGIN,
            Outcome.FAILED,
            Reason.FLAGGED,
            score=score,
            threshold=classifier.threshold,
            gate_version=VERSION,
            details={"list": "classifier"},
        )


def flagged(match: Match) -> Judgement:
    """Return the failure that a match is: list and line travel, the phrase stays here."""
    return Judgement(
        CheckLevel.PLUGIN,
        Outcome.FAILED,
        Reason.FLAGGED,
        span=Span(char_start=match.begin, char_end=match.end),
        gate_version=VERSION,
        details={"list": match.phrase.source, "line": match.phrase.line},
    )


def concluded(outcome: Outcome, reason: Reason) -> Judgement:
    """Return a conclusion that is no failure."""
    return Judgement(CheckLevel.PLUGIN, outcome, reason, gate_version=VERSION)


def words_of(request: GateRequest) -> str:
    """Return what the user said: of a conversation not what the system and the model said."""
    turns = request.body.get("messages", request.body.get("input"))
    if not isinstance(turns, Sequence) or isinstance(turns, str):
        return request.prompt
    asked = (turn for turn in turns if not is_ours(turn))
    return "\n".join(text for turn in asked for text in texts_in(turn))


def is_ours(turn: object) -> bool:
    """Return True for what the system or the model said."""
    return isinstance(turn, Mapping) and turn.get("role") in OUR_ROLES


def texts_in(value: Any, depth: int = 6) -> list[str]:
    """Return the texts of a turn: its content, or that of its parts."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        fields = (value.get(name) for name in ("content", "text", "output"))
        return [text for field in fields if depth for text in texts_in(field, depth - 1)]
    if isinstance(value, Sequence) and depth:
        return [text for each in value for text in texts_in(each, depth - 1)]
    return []
