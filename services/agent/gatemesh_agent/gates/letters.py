"""English prose whose letters were lost, moved or changed: told by letter groups, not by words.

A stream that loses one letter in ten stays readable, so neither signs nor scripts betray it, but
every fourth word or so then holds three letters in a row that no English word has.
"""

import base64
from collections.abc import Iterator
from functools import lru_cache

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.languages import unquoted
from gatemesh_agent.gates.letter_table import ENGLISH
from gatemesh_agent.gates.scripts import is_plain
from gatemesh_agent.gates.sourcecode import reads_as_code
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.messages import Reason

LETTERS = " abcdefghijklmnopqrstuvwxyz"
"""What a group is made of; the blank is the edge of a word."""
PASSAGE = 768
STRIDE = 512
"""Characters between two looks."""
SHORTEST = 384
WORDS = 60
"""Fewest words that say something."""
ODD_WORDS = 8
"""Different words without sense. Source: at most five in 2,037 passages of technical English."""
ODD_SHARE = 0.08
COMMON_SHARE = 0.1
"""Share of common words that shows a passage to be English prose, damaged or not."""
FOREIGN_SHARE = 0.01
COMMON = frozenset(
    "the and of is was are were that this with for which have has not from they been would to in a"
    " it on as by or be at an if you your can will when but all one".split()
)
WORD = regex.compile(
    r"""(?<!\S)["'(]?(?:[a-z]{1,2}['’])?([a-z]+)(?:['’][a-z]{1,2})?(?=[,.;:!?)"']{0,2}(?:\s|$))"""
)
"""A word in small letters between blanks: no name, no part of an address or a program."""
WISHES = (Topic.LANGUAGES, Topic.MISSPELT, Topic.PLAYFUL, Topic.ENCODED, Topic.SPELLING)
BITS = base64.b64decode(ENGLISH)


def plain_words(text: str) -> list[str]:
    """Return the words in small letters that stand between blanks."""
    return WORD.findall(text)


def damaged_words(window: TextWindow, context: RequestContext, *, last: bool) -> Finding | None:
    """Find English prose in which many words are none."""
    if (window.end % STRIDE and not last) or window.end < SHORTEST or window.in_fence:
        return None
    text = window.last(PASSAGE)
    share = odd_share(text)
    if not share or not is_plain(context.prompt) or context.asks(*WISHES) or reads_as_code(window):
        return None
    return Finding(Reason.SPACING_LOST, share, ODD_SHARE, window.end - len(text), window.end)


def odd_share(text: str) -> float:
    """Return the share of words that are none in a passage of English prose; 0 for a low one."""
    if not text.isascii() and len(foreign_letters(text)) > FOREIGN_SHARE * len(text):
        return 0.0
    words = plain_words(text)
    if len(words) < WORDS:
        return 0.0
    odd = [word for word in words if is_odd(word)]
    if len(set(odd)) < ODD_WORDS or len(odd) < ODD_SHARE * len(words):
        return 0.0
    if sum(word in COMMON for word in words) < COMMON_SHARE * len(words):
        return 0.0
    # A quotation in another language is no damage.
    loose = set(odd).intersection(plain_words(unquoted(text)))
    return len(odd) / len(words) if len(loose) >= ODD_WORDS else 0.0


def foreign_letters(text: str) -> list[str]:
    """Return the letters of a text that are not ASCII."""
    return [sign for sign in text if sign > "\x7f" and sign.isalpha()]


@lru_cache(maxsize=8192)
def is_odd(word: str) -> bool:
    """Return True for a word with three letters in a row that no English word holds."""
    return not all(BITS[group >> 3] >> (group & 7) & 1 for group in groups_of(word))


def groups_of(word: str) -> Iterator[int]:
    """Yield the number of each group of three letters of a word, its edges included."""
    one, two = 0, ord(word[0]) - 96
    for letter in (*map(ord, word[1:]), 96):
        three = letter - 96
        yield (one * 27 + two) * 27 + three
        one, two = two, three
