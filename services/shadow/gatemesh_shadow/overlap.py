"""What two texts share: script, words, sentences. Pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import islice

from gatemesh_shadow.lexicon import STOPWORDS

WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+(?:[.,]\d+)*")
SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n+")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
CJK_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
FENCE = re.compile(r"```[\w+-]*\n?(.*?)(?:```|\Z)", re.DOTALL)
MARKUP = re.compile(r"[*_`#>|]+|^[^\S\n]*(?:[-•]|\d+[.)])\s+", re.MULTILINE)
"""Blanks before a mark within its line only: a flood of line breaks is looked at once."""
LEAST_LIKENESS = 0.5
MOST_SENTENCES = 64
LONGEST_SENTENCE = 500
"""Characters of a sentence that are compared."""
STEM_CHARS = 5
"""Of a longer word, what stands for all its forms."""

SCRIPTS = (
    ("latin", "LATIN"),
    ("han", "CJK"),
    ("kana", "HIRAGANA"),
    ("kana", "KATAKANA"),
    ("hangul", "HANGUL"),
    ("cyrillic", "CYRILLIC"),
    ("arabic", "ARABIC"),
    ("devanagari", "DEVANAGARI"),
    ("greek", "GREEK"),
    ("hebrew", "HEBREW"),
    ("thai", "THAI"),
    ("tamil", "TAMIL"),
)


def normalised(text: str) -> str:
    """The text without what never matters: width, case, blanks, marks, markup."""
    folded = unicodedata.normalize("NFKC", MARKUP.sub(" ", text)).casefold()
    kept = (letter if letter.isalnum() or letter in "%$€£¥+-./:" else " " for letter in folded)
    return " ".join("".join(kept).split()).rstrip(" .:-").lstrip(" .:")


def script_of(text: str) -> str:
    """The script that most letters belong to; `none` without letters."""
    counts = Counter(_script(letter) for letter in text[:4000] if letter.isalpha())
    if not counts:
        return "none"
    # Japanese is written in both; a third of kana tells it from Chinese.
    if counts["kana"] * 3 > counts["han"] and counts["kana"] > 0:
        return "kana"
    return counts.most_common(1)[0][0]


def _script(letter: str) -> str:
    if letter.isascii():
        return "latin"
    name = unicodedata.name(letter, "")
    return next((script for script, prefix in SCRIPTS if name.startswith(prefix)), "other")


def words_of(text: str) -> list[str]:
    """All words in lower case; ideographs count one by one."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [
        piece
        for word in WORD.findall(folded)
        for piece in (list(word) if CJK.search(word) else [word])
    ]


def stems(text: str) -> list[str]:
    """Content words, each cut to a stem; of ideographs the overlapping pairs."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    latin = [
        word[:STEM_CHARS]
        for word in WORD.findall(CJK_RUN.sub(" ", folded))
        if word not in STOPWORDS and len(word) > 1
    ]
    runs = CJK_RUN.findall(folded)
    return [*latin, *(run[at : at + 2] for run in runs for at in range(len(run) - 1))]


def shared(part: Sequence[str], whole: Iterable[str]) -> float:
    """Share of the first list's distinct words that the second has, 0..1; 1 without words."""
    distinct = set(part)
    return len(distinct & set(whole)) / len(distinct) if distinct else 1.0


def sentences(text: str) -> list[str]:
    """The sentences or lines with words in them."""
    return [one for one in (part.strip() for part in SENTENCE.split(text)) if WORD.search(one)]


def is_code(text: str) -> bool:
    """True when most of the text is in a code fence, or reads like a program."""
    fenced = sum(len(block[0]) for block in FENCE.finditer(text))
    if fenced * 2 > len(text):
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    return sum(map(_is_code_line, lines)) * 2 > len(lines) > 0


CODE_LINE = re.compile(
    r"""^\s*(?:def|class|import|from\s+\w+\s+import|return|for\s*\(|if\s*\(|while\s*\(|else\b|elif\b
        |function|const|let|var|public|private|static|void|int|\#include|select\s.+\sfrom|insert\s+into
        |update\s.+\sset|create\s+table|fn|func|package|using|try\b|except\b|print\()
      | [{};]\s*$ | ^\s*[\w.\[\]]+\s*[-+*/]?=\s*\S""",
    re.VERBOSE | re.IGNORECASE,
)


def _is_code_line(line: str) -> bool:
    return bool(CODE_LINE.search(line))


def aligned(first: str, second: str, least: float) -> list[tuple[str, str]]:
    """Pairs of sentences that say almost the same in almost the same words.

    Of long answers the first distinct sentences are looked at: each is compared with each.
    """
    others = [(one, words_of(one)) for one in _distinct(second)]
    pairs = []
    for sentence in _distinct(first):
        own = words_of(sentence)
        ratio, best = max(
            ((_likeness(own, words), other) for other, words in others), default=(0.0, "")
        )
        if ratio >= least:
            pairs.append((sentence, best))
    return pairs


def _distinct(text: str) -> list[str]:
    found = (one[:LONGEST_SENTENCE] for one in sentences(text))
    return list(islice(dict.fromkeys(found), MOST_SENTENCES))


def _likeness(first: Sequence[str], second: Sequence[str]) -> float:
    if first == second:
        return 1.0
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    is_near = matcher.real_quick_ratio() > LEAST_LIKENESS < matcher.quick_ratio()
    return matcher.ratio() if is_near else 0.0


def common_prefix(first: str, second: str) -> int:
    """Characters that both begin with, up to the end of a word."""
    at = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        at += 1
    while at and at < min(len(first), len(second)) and first[at - 1].isalnum():
        if CJK.match(first[at - 1]):
            break
        at -= 1
    return at
