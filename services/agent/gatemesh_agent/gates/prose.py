"""Sentences that say nothing new."""

import re
from collections import deque
from collections.abc import Iterable

import regex

from gatemesh_agent.gates.classes import ASCII_CODES, SignClass
from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.counts import largest_count
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.novelty import new_share
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.units import is_dense, is_wordy, looks_like_code
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.messages import Reason

MEMORY = 12
"""Sentences that a new one is compared with."""
RELIEF = 4
SAME_SHARE = 0.75
"""Share of its words that one earlier sentence must hold for a sentence to be stale."""
STALE_SENTENCES = 13
LATE_START = 512
LATE_SENTENCES = 6
LATE_CHARS = 320.0
LATE_NEW_SHARE = 0.35
STALE_CHARS = 600.0
DENSE_WEIGHT = 2.5
SMALLEST_SENTENCE = 3
SMALLEST_CHARS = 2 * SMALLEST_SENTENCE
"""Of such a sentence at least, with its end and its blanks."""
SMALLEST_DENSE_CHARS = SMALLEST_SENTENCE + 1
"""Where each sign is a unit."""
PROSE_SHARE = 0.8
LONGEST_SENTENCE = 600
WISHED_FACTOR = 4.0


Sentence = tuple[int, str, frozenset[str]]
"""Where it begins, its text, and its units."""

END = re.compile(r"[.!?。！？।۔\n]+")
UNIT = regex.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[\p{L}\p{M}\p{N}'’]+")
PROSE = SignClass(r"[\p{L}\p{M}\s,.'’،、，]")
UNUSUAL = re.compile(r"[^A-Za-z \t\n,.']")
"""Whatever may keep a plain sentence from being prose."""
PLAIN_WORDS = {
    code: chr(code).lower() if UNIT.match(chr(code)) is not None else " " for code in ASCII_CODES
}
"""Leaves lower-case words and blanks of plain ASCII text."""
PLAIN_LINES = PLAIN_WORDS | {ord(sign): "\n" for sign in ".!?\n"}
"""The same, with a line break for each sign that ends a sentence."""


class Staleness:
    """Follows how long no sentence brought anything new."""

    __slots__ = (
        "_chars",
        "_context",
        "_limit",
        "_recent",
        "_since",
        "_stale",
        "_start",
        "_unbroken",
    )

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._since = 0
        self._recent: deque[frozenset[str]] = deque(maxlen=MEMORY)
        self._stale = 0
        self._unbroken = 0
        """Stale sentences of words since the last new one."""
        self._chars = 0.0
        self._start = 0
        self._limit: float | None = None

    def scan(self, window: TextWindow, *, last: bool = False) -> Finding | None:
        """Look at the sentences that ended since the last time."""
        text = window.since(self._since)
        shortest = SMALLEST_CHARS if text.isascii() else SMALLEST_DENSE_CHARS
        if last and self._stale + len(text) // shortest <= LATE_SENTENCES:
            # Not even if all of it were stale.
            return None
        start = window.end - len(text)
        sentences, done = plain_sentences(text) if text.isascii() else sentences_of(text)
        for at, sentence, units in sentences:
            finding = self._sentence(sentence, units, start + at, window)
            if finding is not None:
                return finding
        self._since = start + done
        if len(text) - done > LONGEST_SENTENCE:
            self._forget(start + len(text))
        return None

    def _sentence(
        self, sentence: str, units: frozenset[str], start: int, window: TextWindow
    ) -> Finding | None:
        if len(units) < SMALLEST_SENTENCE or window.in_fence or not is_running(sentence):
            return None
        stale = is_known(units, self._recent)
        self._recent.append(units)
        if not stale:
            self._relax()
            return None
        if not self._stale:
            self._start = start
        self._stale += 1
        self._unbroken += is_wordy(sentence)
        self._chars += len(sentence) * (DENSE_WEIGHT if is_dense(sentence) else 1.0)
        if not (self._is_long() or self._is_late_loop(window)):
            return None
        return self._finding(start + len(sentence))

    def _is_long(self) -> bool:
        return self._chars > STALE_CHARS and self._stale > STALE_SENTENCES

    def _is_late_loop(self, window: TextWindow) -> bool:
        """Return True for fewer stale sentences, behind other text, without new groups of words."""
        if (
            self._start < LATE_START
            or self._unbroken <= LATE_SENTENCES
            or self._chars <= LATE_CHARS
        ):
            return False
        return new_share(window) <= LATE_NEW_SHARE

    def _finding(self, end: int) -> Finding | None:
        if self._stale <= LATE_SENTENCES:
            # No prompt makes the limit lower, and looking through a long one takes milliseconds.
            return None
        if self._limit is None:
            self._limit = self._asked_for()
        if self._stale <= self._limit:
            return None
        return Finding(Reason.REPETITION, float(self._stale), self._limit, self._start, end)

    def _asked_for(self) -> float:
        wished = self._context.asks(Topic.REPEATING, Topic.PLAYFUL, Topic.DIALOGUE)
        count = largest_count(self._context.prompt, repeating=wished)
        wish = STALE_SENTENCES * WISHED_FACTOR if wished else 0.0
        return max(wish, count * 1.5, float(LATE_SENTENCES))

    def _relax(self) -> None:
        """Let one new sentence make up for a few stale ones."""
        self._unbroken = 0
        left = max(self._stale - RELIEF, 0)
        self._chars *= left / self._stale if self._stale else 0.0
        self._stale = left

    def _forget(self, end: int) -> None:
        self._recent.clear()
        self._stale, self._chars, self._unbroken = 0, 0.0, 0
        self._since = end


def plain_sentences(text: str) -> tuple[list[Sentence], int]:
    """Return what `sentences_of` does of ASCII text, but for bare ends, in a third of its time."""
    *ended, rest = text.translate(PLAIN_LINES).split("\n")
    found = []
    at = 0
    for words in ended:
        if words:
            found.append((at, text[at : at + len(words)], frozenset(words.split())))
        at += len(words) + 1
    return found, len(text) - len(rest)


def sentences_of(text: str) -> tuple[list[Sentence], int]:
    """Return the sentences that have ended, and where the text goes on behind them."""
    found = []
    done = 0
    for end in END.finditer(text):
        sentence = text[done : end.start()]
        found.append((done, sentence, units_of(sentence)))
        done = end.end()
    return found, done


def is_running(sentence: str) -> bool:
    """Return True for words in a row, as opposed to data and code."""
    if UNUSUAL.search(sentence) is None:
        return True
    if looks_like_code(sentence):
        return False
    return PROSE.count(sentence) >= PROSE_SHARE * len(sentence)


def units_of(sentence: str) -> frozenset[str]:
    """Return the words of a sentence, and the signs of scripts without blanks."""
    if sentence.isascii():
        return frozenset(sentence.translate(PLAIN_WORDS).split())
    return frozenset(UNIT.findall(sentence.lower()))


def is_known(units: frozenset[str], recent: Iterable[frozenset[str]]) -> bool:
    """Return True when a sentence repeats most words of an earlier one of about its length."""
    size = len(units)
    least, most = SAME_SHARE * size, size / SAME_SHARE
    for earlier in recent:
        if least <= len(earlier) <= most:
            # The longer of the two decides, and it is mostly this quick look that says no.
            shared = len(units & earlier)
            if shared >= least and shared >= SAME_SHARE * len(earlier):
                return True
    return False
