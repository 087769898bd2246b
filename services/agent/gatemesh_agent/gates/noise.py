"""Signs, digits and breaks where words should be, or inside them."""

import re
from itertools import pairwise

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.leftovers import NUMERIC
from gatemesh_agent.gates.sourcecode import is_source, reads_as_code
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.messages import Reason

PASSAGE = 240
SIGNS = re.compile(r"[#@~|^*%$\\&+]")
INNER = re.compile(r"(?<=[^\W\d_])[#@~|^*%$\\&+](?=[^\W\d_])")
"""A sign between two letters that no word has there."""
INNER_PLAIN = re.compile(r"(?<=[^\W\d_])[#@~|%$&](?=[^\W\d_])")
FORMULA = re.compile(r"[=$]")
COMMAND = re.compile(r"\\[A-Za-z]+")
"""A sign of a formula, such as `\\cdot`."""
INNER_LIMIT = 8
INNER_KINDS = 3
WIDE = regex.compile(r"[A-Za-z][Ａ-Ｚａ-ｚ]|[Ａ-Ｚａ-ｚ][A-Za-z]")
WIDE_LIMIT = 4
CASE_CHANGE = regex.compile(r"\p{Ll}\p{Lu}")
"""Inside a word; names such as iPhone are few."""
LETTERS_ONLY = regex.compile(r"(?<!\S)\p{L}+(?=[.,;:!?]?(?:\s|$))")
HUMPS = regex.compile(r"\p{Lu}?\p{Ll}+(?:\p{Lu}\p{Ll}{2,})+")
"""A name of several words, as programs write it."""
ACRONYM = regex.compile(r"\p{Ll}{1,3}\p{Lu}{2,4}s?")
"""A name that begins small, such as mRNA or macOS."""
CASE_LENGTH = 4
CASE_TAIL = 48
CASE_LIMIT = 8
CASE_SHARE = 0.5
ASKING = "?"
LOST_WORD = re.compile(r"\?+[,.;:!]?")
LOST_LIMIT = 8
LOST_SHARE = 0.6
LOST_LENGTHS = 4
COLUMN_LINES = 28
COLUMN_STOPS = 2
COLUMN_LOWER = 0.6
COLUMN_WORD = regex.compile(r"\p{L}[\p{L}'’-]*[,.;:!?]?")
DIGITS_LIMIT = 176
DIGIT_KINDS = 5


def noisy(window: TextWindow, context: RequestContext) -> Finding | None:
    """Find a passage whose words are broken by signs, lost, or one a line."""
    text = window.last(PASSAGE)
    if window.in_fence:
        return None
    score = inner_signs(text) or mixed_widths(text) or case_noise(text)
    reason = Reason.SYMBOL_SOUP
    if not score and text.count(ASKING) > LOST_LIMIT:
        score, reason = lost_words(text), Reason.MOJIBAKE
    if not score and text.count("\n") >= COLUMN_LINES:
        score, reason = column(text), Reason.SPACING_LOST
    if not score or is_wanted(window, context):
        return None
    return Finding(reason, score, 1.0, window.end - len(text), window.end)


def is_wanted(window: TextWindow, context: RequestContext) -> bool:
    """Return True where programs or the prompt explain odd signs."""
    if context.asks(Topic.MISSPELT):
        return True
    asked = (Topic.DRAWING, Topic.ENCODED, Topic.SIGNS, Topic.PLAYFUL, Topic.ENCODING, Topic.GLUED)
    return reads_as_code(window) or context.asks(*asked)


def inner_signs(text: str) -> float:
    """Return how many letters have a sign between them, as a share of the limit."""
    if len(SIGNS.findall(text)) <= INNER_LIMIT:
        return 0.0
    signs = signs_inside(text)
    if len(signs) <= INNER_LIMIT or len(set(signs)) < INNER_KINDS or is_source(text):
        return 0.0
    return len(signs) / INNER_LIMIT


def signs_inside(text: str) -> list[str]:
    """Return the signs between two letters, but for those with which a formula is written."""
    pattern = INNER if FORMULA.search(text) is None else INNER_PLAIN
    return pattern.findall(COMMAND.sub("", text))


def mixed_widths(text: str) -> float:
    """Return how often letters of both widths stand side by side, as a share of the limit."""
    found = 0 if text.isascii() else len(WIDE.findall(text))
    return found / WIDE_LIMIT if found > WIDE_LIMIT else 0.0


def case_noise(text: str) -> float:
    """Return how many words change from small to capital letters, as a share of the limit."""
    if CASE_CHANGE.search(text[-CASE_TAIL:]) is None:
        return 0.0
    words = [word for word in LETTERS_ONLY.findall(text) if len(word) >= CASE_LENGTH]
    changed = {word for word in words if CASE_CHANGE.search(word) and not is_name(word)}
    if len(changed) <= CASE_LIMIT or len(changed) < CASE_SHARE * len(words):
        return 0.0
    return len(changed) / CASE_LIMIT


def is_name(word: str) -> bool:
    """Return True for capitals where names of programs and of chemistry have them."""
    return HUMPS.fullmatch(word) is not None or ACRONYM.fullmatch(word) is not None


def lost_words(text: str) -> float:
    """Return how many words are question marks and nothing else, as a share of the limit."""
    words = text.split()
    lost = [word for word in words if LOST_WORD.fullmatch(word)]
    if len(lost) <= LOST_LIMIT or len(lost) < LOST_SHARE * len(words):
        return 0.0
    return len(lost) / LOST_LIMIT if len(set(map(len, lost))) >= LOST_LENGTHS else 0.0


def column(text: str) -> float:
    """Return how many lines hold one word of running text, as a share of the limit."""
    lines = [line for line in text.split("\n")[1:-1] if line]
    if len(lines) < COLUMN_LINES or not all(map(COLUMN_WORD.fullmatch, lines)):
        return 0.0
    stops = sum(not line[-1].isalpha() for line in lines)
    lower = sum(line[0].islower() for line in lines)
    ordered = all(one <= other for one, other in pairwise(lines))
    running = COLUMN_STOPS <= stops < len(lines) / 2 and lower >= COLUMN_LOWER * len(lines)
    return len(lines) / COLUMN_LINES if running and not ordered else 0.0


def endless_digits(window: TextWindow, context: RequestContext) -> Finding | None:
    """Find a number without end where the prompt asks for none."""
    if not window.block.isdigit():
        return None
    text = window.last(DIGITS_LIMIT).replace(".", "", 1)
    endless = len(text) >= DIGITS_LIMIT - 1 and text.isdigit() and len(set(text)) >= DIGIT_KINDS
    if not endless or window.in_fence or NUMERIC.search(context.prompt) is not None:
        return None
    if context.asks(Topic.ENCODED, Topic.REPEATING, Topic.PROGRAMS):
        return None
    start = window.end - DIGITS_LIMIT
    return Finding(Reason.SYMBOL_SOUP, float(len(text)), float(DIGITS_LIMIT), start, window.end)
