"""What kind of thing repeats: people ask for long rules and tables, not for prose in a loop."""

import re
from enum import StrEnum

import regex

from gatemesh_agent.gates.classes import SignClass


class UnitKind(StrEnum):
    """Kinds of repeated units, each with its own limit."""

    BREAK = "break"
    BLANK = "blank"
    RULE = "rule"
    SIGN = "sign"
    SIGNS = "signs"
    PATTERN = "pattern"
    DIGIT = "digit"
    DIGITS = "digits"
    LETTER = "letter"
    SYLLABLE = "syllable"
    WORD = "word"
    TEXT = "text"


SHORT_PERIOD = 8
SYLLABLE_PERIOD = 4
RULE = regex.compile(r"[\s\-=_*#~.+|:·•^─-╿▀-▟\\/<>]+")
"""Signs of which people draw rules, boxes and tables."""
DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f\u1780-\u17ff]")
PROSE_SIGNS = SignClass(r"[\p{L}\p{M}\s0,.!?'’\-–。，、！？；：:;《》「」*()\"“”]")
CODE_SIGN = re.compile(r"[(){}\[\]<>=;_|\"]")
CODE_SIGNS_LIMIT = 2
WORD = regex.compile(r"[\p{L}\p{M}'’]+")
PROSE_SHARE = 0.97
PROSE_LETTER_SHARE = 0.7
PROSE_WORDS = 4
PROSE_DENSE_LETTERS = 8


def kind_of(unit: str) -> UnitKind:
    """Return the kind of a repeated unit."""
    if not unit.strip():
        return UnitKind.BREAK if "\n" in unit or "\r" in unit else UnitKind.BLANK
    if any(map(str.isalpha, unit)):
        return kind_of_letters(unit)
    if any(map(str.isdigit, unit)):
        return UnitKind.DIGIT if len(unit) == 1 else UnitKind.DIGITS
    return kind_of_signs(unit)


def kind_of_letters(unit: str) -> UnitKind:
    """Tell one letter, a syllable of laughter, a word, and text apart."""
    bare = "".join(unit.split())
    if len(bare) == 1:
        return UnitKind.LETTER if len(unit) == 1 else UnitKind.SYLLABLE
    if len(unit) <= SYLLABLE_PERIOD and bare == unit:
        return UnitKind.SYLLABLE
    blanks = len(unit) - len(bare)
    word = blanks <= 1 and WORD.fullmatch("".join(unit.split(" "))) is not None
    return UnitKind.WORD if word and not is_dense(unit) else UnitKind.TEXT


def kind_of_signs(unit: str) -> UnitKind:
    """Tell rules, floods of a sign and drawn patterns apart."""
    if len(unit) > SHORT_PERIOD:
        return UnitKind.PATTERN
    if RULE.fullmatch(unit) is not None:
        return UnitKind.RULE
    return UnitKind.SIGN if len(unit) == 1 else UnitKind.SIGNS


def is_dense(text: str) -> bool:
    """Return True where most letters belong to scripts that say much in one character."""
    if text.isascii():
        return False
    return len(DENSE.findall(text)) * 2 > sum(map(str.isalpha, text))


def looks_like_code(text: str) -> bool:
    """Return True for more brackets and quotes than one aside has."""
    return len(CODE_SIGN.findall(text)) > CODE_SIGNS_LIMIT


def is_wordy(unit: str) -> bool:
    """Return True for words, however few, as opposed to data and code."""
    if looks_like_code(unit) or PROSE_SIGNS.count(unit) < PROSE_SHARE * len(unit):
        return False
    return sum(map(str.isalpha, unit)) * 2 >= len(unit)


def is_prose(text: str) -> bool:
    """Return True for running words, as opposed to data and code."""
    if looks_like_code(text) or PROSE_SIGNS.count(text) < PROSE_SHARE * len(text):
        return False
    if is_dense(text):
        return len(DENSE.findall(text)) >= PROSE_DENSE_LETTERS
    found = WORD.findall(text)
    blanks = text.count(" ")
    letters = sum(map(len, found)) + blanks
    return len(found) >= PROSE_WORDS and letters >= PROSE_LETTER_SHARE * len(text)
