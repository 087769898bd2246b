"""What an answer claims: numbers with units, identifiers, names, yes or no. Pure."""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass

from gatemesh_shadow.lexicon import (
    HAN_DIGITS,
    HAN_NEGATIONS,
    HAN_OPPOSITES,
    HAN_SCALES,
    NEGATIONS,
    NUMBER_WORDS,
    OPPOSITES,
    STOPWORDS,
    UNITS,
)
from gatemesh_shadow.overlap import MARKUP, words_of

UNIT_WORDS = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
NUMBER = re.compile(
    rf"(?P<before>[$€£¥])?\s?(?P<sign>(?<![\w)])[-−])?"
    rf"(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:[.,]\d+)?)"
    rf"(?:\s?(?P<unit>(?:{UNIT_WORDS})(?:s|es)?)(?![A-Za-z]))?",
    re.IGNORECASE,
)
HAN_NUMBER = re.compile("[" + "".join([*HAN_DIGITS, *HAN_SCALES]) + "]+")
HAN_MEASURE = re.compile(r"^[个只本位人年月日号天次种岁元块米公里斤升分秒小时%％倍页章座条家台辆]")
IDENTIFIER = re.compile(
    r"(?<![\w@./-])(?=[\w./:@-]*\d)(?=[\w./:@-]*[A-Za-z])[\w./:@-]{4,}(?<![./:-])"
    r"|(?<![\w.-])\d+(?:[-:/]\d+){1,}(?![\w-])"
)
NAME = re.compile(r"(?<![.!?:\s\"'“(])\s+([A-Z\u00c0-\u00de][\w\u00c0-\u024f'’-]+)")
LIST_NUMBER = re.compile(r"^[^\S\n]*\d+[.)]\s+", re.MULTILINE)
BASE_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Facts:
    """The claims of one text, in forms that can be compared."""

    numbers: Counter[tuple[str, float]]
    """Kind of unit (empty without one) and value in the kind's base unit."""
    identifiers: frozenset[str]
    names: frozenset[str]
    negations: int
    poles: frozenset[str]
    """Words of which the opposite is known."""


def facts_of(text: str) -> Facts:
    """Read the claims of a text."""
    plain = unicodedata.normalize("NFKC", MARKUP.sub(" ", LIST_NUMBER.sub("", text)))
    identifiers = frozenset(one.casefold() for one in IDENTIFIER.findall(plain))
    rest = IDENTIFIER.sub(_unless_quantity, plain)
    return Facts(
        numbers=Counter([*_figures(rest), *_spelled(rest)]),
        identifiers=frozenset(one for one in identifiers if not _is_quantity(one)),
        names=frozenset(one.casefold().removesuffix("'s") for one in NAME.findall(plain)),
        negations=_negations(plain),
        poles=_poles(plain),
    )


def _is_quantity(text: str) -> bool:
    """True for a number with its unit, such as `5km`, and for a plain word with a mark."""
    found = NUMBER.fullmatch(text)
    return bool(found and found["unit"])


def _unless_quantity(found: re.Match[str]) -> str:
    return found[0] if _is_quantity(found[0]) else " "


def _figures(text: str) -> list[tuple[str, float]]:
    return [_figure(found) for found in NUMBER.finditer(text)]


def _figure(found: re.Match[str]) -> tuple[str, float]:
    digits = found["digits"]
    is_decimal_comma = re.fullmatch(r"\d+,\d{1,2}", digits)
    value = float(digits.replace(",", ".") if is_decimal_comma else digits.replace(",", ""))
    value = -value if found["sign"] else value
    return _measured(value, found["before"] or found["unit"] or "")


def _measured(value: float, unit: str) -> tuple[str, float]:
    word = unit.casefold()
    known = (
        UNITS.get(word) or UNITS.get(word.removesuffix("s")) or UNITS.get(word.removesuffix("es"))
    )
    kind, size = known or ("", 1.0)
    return kind, float(f"{value * size:.{BASE_DIGITS}g}")


def _spelled(text: str) -> list[tuple[str, float]]:
    """Numbers in words; the small ones that are also articles do not count."""
    words = [NUMBER_WORDS[word] for word in words_of(text) if word in NUMBER_WORDS]
    found = [("", float(number)) for number in words if number > 1]
    han = ((match[0], text[match.end() :]) for match in HAN_NUMBER.finditer(text))
    counted = (pair for pair in han if len(pair[0]) > 1 or HAN_MEASURE.match(pair[1]))
    return [*found, *(_measured(_han_value(word), _han_unit(rest)) for word, rest in counted)]


def _han_unit(rest: str) -> str:
    return next((unit for unit in UNITS if not unit.isascii() and rest.startswith(unit)), "")


def _han_value(text: str) -> float:
    total, section, digit = 0, 0, 0
    for letter in text:
        scale = HAN_SCALES.get(letter)
        if scale is None:
            digit = (
                digit * 10 + HAN_DIGITS[letter] if not total and not section else HAN_DIGITS[letter]
            )
        elif scale >= HAN_SCALES["万"]:
            total, section, digit = (total + section + digit) * scale, 0, 0
        else:
            section, digit = section + (digit or 1) * scale, 0
    return float(total + section + digit)


def _negations(text: str) -> int:
    words = (word.replace("'", "").replace("’", "") for word in words_of(text))
    english = sum(word in NEGATIONS for word in words)
    return english + len(HAN_NEGATIONS.findall(text))


def _poles(text: str) -> frozenset[str]:
    words = set(words_of(text))
    latin = {word for pair in OPPOSITES for word in pair if word in words}
    return frozenset(latin.union(*(_han_poles(text, pair) for pair in HAN_OPPOSITES)))


def _han_poles(text: str, pair: tuple[str, str]) -> set[str]:
    """The words of a pair that are there; inside the other one a word does not count."""
    longer, shorter = sorted(pair, key=len, reverse=True)
    rest = text.replace(longer, " ") if shorter in longer else text
    return {word for word, where in ((longer, text), (shorter, rest)) if word in where}


def opposed(first: Facts, second: Facts) -> str | None:
    """The word of the first text whose opposite the second has instead."""
    for one, other in (*OPPOSITES, *HAN_OPPOSITES):
        for own, theirs in ((one, other), (other, one)):
            if _only(own, theirs, first) and _only(theirs, own, second):
                return own
    return None


def _only(word: str, other: str, facts: Facts) -> bool:
    return word in facts.poles and other not in facts.poles


def content(text: str) -> list[str]:
    """Words that carry meaning, in order."""
    return [word for word in words_of(text) if word not in STOPWORDS]
