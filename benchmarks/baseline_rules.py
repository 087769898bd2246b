"""Simple rules that people use against broken text, to be measured beside the gates."""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Sequence

Rule = Callable[[str, str | None], bool]
"""Says of a text and its finish reason whether it is broken."""
CLOSING = tuple(".!?:;。！？…\"”'’»)]}`*|।۔؟")
SMALLEST_TEXT_WORDS = 50
PIECE = re.compile(
    r"[\u3040-\u9fff\uac00-\ud7af\u0e00-\u0e7f]|[^\s\u3040-\u9fff\uac00-\ud7af\u0e00-\u0e7f]+"
)
"""A word, or one letter of a script that has no blanks between words."""


def has_control(text: str, _reason: str | None = None) -> bool:
    """First rule: control characters, or one character ten times in a row."""
    return re.search(r"(.)\1{9}", text, re.DOTALL) is not None or any(
        sign not in "\n\t\r" and unicodedata.category(sign) == "Cc" for sign in text
    )


def has_odd(text: str, _reason: str | None = None) -> bool:
    """Second rule: the first, plus U+FFFD and private-use characters."""
    return has_control(text) or any(
        sign == "\ufffd" or unicodedata.category(sign) == "Co" for sign in text
    )


def lacks_end(text: str, reason: str | None) -> bool:
    """Third rule: the second, plus a chosen end without a closing mark."""
    return has_odd(text) or (reason == "stop" and not text.rstrip().endswith(CLOSING))


def repeats(text: str, _reason: str | None = None) -> bool:
    """Fourth rule: the repetition ratios of Gopher, from 50 words.

    Source: Rae et al. 2021, table A1.
    """
    words = PIECE.findall(text)
    if len(words) < SMALLEST_TEXT_WORDS:
        return False
    if any(copies_share_too_high(text, mark) for mark in ("\n", "\n\n")):
        return True
    if any(top_share(words, size) > limit for size, limit in ((2, 0.2), (3, 0.18), (4, 0.16))):
        return True
    limits = {5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.1}
    return any(copied_share(words, size) > limit for size, limit in limits.items())


def copies_share_too_high(text: str, mark: str) -> bool:
    """Return True where too many lines or paragraphs are copies of others."""
    parts = [part for part in text.split(mark) if part.strip()]
    copies = [part for part, count in Counter(parts).items() for _ in range(count - 1)]
    return len(copies) > 0.3 * len(parts) or sum(map(len, copies)) > 0.2 * len(text)


def grams_of(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    """Return all runs of `size` words."""
    return [tuple(words[at : at + size]) for at in range(len(words) - size + 1)]


def top_share(words: Sequence[str], size: int) -> float:
    """Return the share of characters that the commonest run covers."""
    gram, count = Counter(grams_of(words, size)).most_common(1)[0]
    return sum(map(len, gram)) * count / sum(map(len, words)) if count > 1 else 0.0


def copied_share(words: Sequence[str], size: int) -> float:
    """Return the share of characters in runs that stand there more than once."""
    grams = grams_of(words, size)
    counts = Counter(grams)
    covered = {
        at + offset for at, gram in enumerate(grams) if counts[gram] > 1 for offset in range(size)
    }
    return sum(len(words[at]) for at in covered) / sum(map(len, words))


def compresses(text: str, _reason: str | None = None) -> bool:
    """Fifth rule: zlib ratio above 2.4, as in Whisper."""
    raw = text.encode("utf-8", "surrogatepass")
    return bool(raw) and len(raw) / len(zlib.compress(raw)) > 2.4


def any_of_three(text: str, _reason: str | None = None) -> bool:
    """Sixth rule: the first, the fourth or the fifth."""
    return has_control(text) or repeats(text) or compresses(text)


BASELINES: dict[str, Rule] = {
    "control characters, or one character ten times": has_control,
    "the same, plus U+FFFD and private use": has_odd,
    "the same, plus no closing mark": lacks_end,
    "repetition ratios (Gopher), from 50 words": repeats,
    "zlib ratio above 2.4 (Whisper)": compresses,
    "first, fourth or fifth": any_of_three,
}
