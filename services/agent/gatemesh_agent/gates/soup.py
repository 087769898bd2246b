"""Passages without words: loose signs and digits, lost blanks, encoded blobs."""

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.messages import Reason

PASSAGE = 240
SMALLEST_PASSAGE = 160
ALNUM_LIMIT = 0.1
BLANK_LIMIT = 0.35
SIGNS_LIMIT = 9
ODD_SPACING_LIMIT = 0.2
SMALLEST_SOUP_TOKENS = 36
LONG_WORDS_LIMIT = 0.06
GLUED_LIMIT = 72
GLUED_LETTER_SHARE = 0.9
GLUED_LOWER_SHARE = 0.85
GLUED_LETTERS = 9
BLOB_LIMIT = 180
BLOB_PASSAGE = 1024
"""Far enough back to see the link that a blob may be part of."""
BLOB_CLASS_SHARE = 0.08

ODD_SPACING = regex.compile(
    r"\s[.,;:](?!\d)|(?<!\s)[^\S\n]{2}(?!\s)|(?<!\.)\.\.(?!\.)|,\s*\.|\n\s*[.,]"
)
LONG_WORD = regex.compile(r"\p{L}{4,}")
STRUCTURE = regex.compile(r"[\\&|{}=<>`]|://")
GLUED = regex.compile(r"[\p{Latin}\p{Cyrillic}\p{Greek},.;:!?'’()]" f"{{{GLUED_LIMIT},}}")
VOWELS = regex.compile("[aeiouyàáâäãåèéêëìíîïòóôöõùúûüýаеёиоуыэюяіїєαεηιουωάέήίόύώ]")
VOWEL_SHARES = (0.25, 0.6)
BLOB = regex.compile(r"(?<![\w:/.%=&?#+-])[A-Za-z0-9+/=_-]" f"{{{BLOB_LIMIT},}}")
CLASSES = tuple(map(regex.compile, ("[A-Z]", "[a-z]", "[0-9]")))


def wordless(window: TextWindow, context: RequestContext) -> Finding | None:
    """Find a passage of loose signs or digits outside code."""
    text = window.last(PASSAGE)
    if window.in_fence or len(text) < SMALLEST_PASSAGE:
        return None
    score = sign_soup(text) or digit_soup(text)
    if not score or context.asks(Topic.DRAWING, Topic.ENCODED):
        return None
    return Finding(Reason.SYMBOL_SOUP, score, 1.0, window.end - len(text), window.end)


def sign_soup(text: str) -> float:
    """Return how many kinds of signs stand without words, as a share of the limit."""
    solid = "".join(text.split())
    if len(solid) < (1 - BLANK_LIMIT) * len(text) or "```" in text:
        return 0.0
    alnum = sum(map(str.isalnum, solid))
    signs = len({sign for sign in solid if sign.isascii() and not sign.isalnum()})
    return signs / SIGNS_LIMIT if alnum <= ALNUM_LIMIT * len(solid) and signs > SIGNS_LIMIT else 0.0


def digit_soup(text: str) -> float:
    """Return how oddly digits and fragments are spaced, as a share of the limit."""
    tokens = text.split()
    if len(tokens) < SMALLEST_SOUP_TOKENS or STRUCTURE.search(text) is not None:
        return 0.0
    signs = {sign for sign in text if not sign.isspace()}
    if len(LONG_WORD.findall(text)) > LONG_WORDS_LIMIT * len(tokens) or len(signs) < SIGNS_LIMIT:
        return 0.0
    mixed = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    share = len(ODD_SPACING.findall(text)) / len(tokens)
    return share / ODD_SPACING_LIMIT if mixed and share > ODD_SPACING_LIMIT else 0.0


def glued_words(window: TextWindow, context: RequestContext) -> Finding | None:
    """Find prose whose blanks were lost."""
    text = window.last(PASSAGE)
    if window.in_fence or "`" in text:
        return None
    for run in GLUED.finditer(text):
        if is_glued_prose(run.group()) and not context.asks(Topic.GLUED, Topic.ENCODED):
            start = window.end - len(text) + run.start()
            length = run.end() - run.start()
            return Finding(
                Reason.SPACING_LOST, float(length), float(GLUED_LIMIT), start, start + length
            )
    return None


def is_glued_prose(run: str) -> bool:
    """Return True for a run of letters that has the mix of running words."""
    letters = [sign for sign in run.lower() if sign.isalpha()]
    lower = sum(map(str.islower, run))
    if len(letters) < GLUED_LETTER_SHARE * len(run) or lower < GLUED_LOWER_SHARE * len(run):
        return False
    vowels = len(VOWELS.findall("".join(letters))) / len(letters)
    return len(set(letters)) > GLUED_LETTERS and VOWEL_SHARES[0] <= vowels <= VOWEL_SHARES[1]


def encoded_blob(window: TextWindow, context: RequestContext) -> Finding | None:
    """Find a long encoded blob in an answer that nobody asked to be encoded."""
    text = window.last(BLOB_PASSAGE)
    if window.in_fence:
        return None
    for run in BLOB.finditer(text):
        blob = run.group()
        mixed = all(len(kind.findall(blob)) >= BLOB_CLASS_SHARE * len(blob) for kind in CLASSES)
        if mixed and not context.asks(Topic.ENCODED, Topic.ENCODING):
            start = window.end - len(text) + run.start()
            return Finding(
                Reason.ENCODED_BLOB, float(len(blob)), float(BLOB_LIMIT), start, window.end
            )
    return None
