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
from gatemesh_agent.gates.languages import LITTLE_WORDS, OWNERS, unquoted
from gatemesh_agent.gates.letter_table import ENGLISH
from gatemesh_agent.gates.scripts import scripts_in
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
SAMPLE, SAMPLE_ODD = 256, 2
WORDS = 60
"""Fewest words that say something."""
ODD_WORDS = 8
"""Different words without sense. Source: at most five in 2,037 passages of technical English."""
ODD_SHARE = 0.08
COMMON_SHARE = 0.31
"""Share of common words in English prose that lost letters; sound prose has more."""
OWN_SHARE = 0.05
"""Share of words that only English has."""
FOREIGN_LETTERS = 0.01
FOREIGN_SHARE = 0.25
"""Of the English little words, which those of other languages reach in a mixed text."""
COMMON = frozenset(
    f"{LITTLE_WORDS['en']} to in a it on as by or be at an if you your can will when but all"
    " one".split()
)
NOT_OWN = "of is was in a on as at an if will all one for were are"
OWN = COMMON.difference(NOT_OWN.split())
SHORT = 2
FOREIGN = frozenset(word for word, owner in OWNERS.items() if owner != "en" and len(word) > SHORT)
PROMPT_WORD = regex.compile(
    r"\b(?:how|what|why|explain|who|which|where|write|give|describe|tell|list|suggest|compare|is|are"
    r"|does|the|of|for|to|and|my|can|should|with|it)\b",
    regex.IGNORECASE,
)
PROMPT_WORDS = 2
PROMPT_CHARS = 1024
"""Of each end of a prompt, which are read."""
OPENING, CLOSING = "\"'(", ".,;:!?\"')"
WISHES = (
    Topic.LANGUAGES,
    Topic.MISSPELT,
    Topic.PLAYFUL,
    Topic.ENCODED,
    Topic.SPELLING,
    Topic.COMMANDS,
)
BITS = base64.b64decode(ENGLISH)


def plain_words(text: str) -> list[str]:
    """Return the words in small letters between blanks: no names, no addresses, no programs."""
    words = [word.lstrip(OPENING).rstrip(CLOSING) for word in text.split()]
    return [word for word in words if word.isalpha() and word.islower() and word.isascii()]


def damaged_words(window: TextWindow, context: RequestContext, *, last: bool) -> Finding | None:
    """Find English prose in which many words are none."""
    if (window.end % STRIDE and not last) or window.end < SHORTEST or window.in_fence:
        return None
    if not is_english(context.prompt[:PROMPT_CHARS], context.prompt[-PROMPT_CHARS:]):
        return None
    text = window.last(PASSAGE)
    share = odd_share(text)
    if not share or context.asks(*WISHES) or reads_as_code(window):
        return None
    return Finding(Reason.SPACING_LOST, share, ODD_SHARE, window.end - len(text), window.end)


@lru_cache(maxsize=256)
def is_english(head: str, tail: str) -> bool:
    """Return True for a prompt that is plainly English at both ends and nothing else."""
    if scripts_in(head) or scripts_in(tail):
        return False
    return len({word.lower() for word in PROMPT_WORD.findall(tail)}) >= PROMPT_WORDS


def share_of(words: list[str], known: frozenset[str]) -> float:
    """Return which share of words is known."""
    return sum(word in known for word in words) / len(words)


def odd_share(text: str) -> float:
    """Return the share of words that are none in a passage of English prose; 0 for a low one."""
    if not text.isascii() and len(foreign_letters(text)) > FOREIGN_LETTERS * len(text):
        return 0.0
    # In damaged prose no place is without odd words; sound prose ends here.
    if sum(map(is_odd, plain_words(text[-SAMPLE:]))) < SAMPLE_ODD:
        return 0.0
    words = plain_words(text)
    odd = [word for word in words if is_odd(word)]
    if len(words) < WORDS or len(odd) < ODD_SHARE * len(words) or not is_thin_english(words):
        return 0.0
    # A quotation in another language is no damage.
    loose = set(odd).intersection(plain_words(unquoted(text)))
    return len(odd) / len(words) if len(loose) >= ODD_WORDS else 0.0


def is_thin_english(words: list[str]) -> bool:
    """Return True for words of an English text that has fewer common ones than it should."""
    own = share_of(words, OWN)
    if own < OWN_SHARE or share_of(words, COMMON) > COMMON_SHARE:
        return False
    return share_of(words, FOREIGN) <= FOREIGN_SHARE * own


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
