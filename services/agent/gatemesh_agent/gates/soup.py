"""Passages without words: loose signs and digits, lost blanks, encoded blobs."""

import re
from collections.abc import Sequence
from itertools import pairwise
from operator import lt

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.sourcecode import is_source, reads_as_code
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.messages import Reason

PASSAGE = 240
SMALLEST_PASSAGE = 160
ALNUM_LIMIT = 0.1
BLANK_LIMIT = 0.35
SIGNS_LIMIT = 9
QUOTED_SHARE = 0.8
"""Of signs, each in quotation marks, that make a list of operators."""
ODD_SPACING_LIMIT = 0.2
SMALLEST_SOUP_TOKENS = 36
LONG_WORDS_LIMIT = 0.06
GLUED_LIMIT = 72
GLUED_LETTER_SHARE = 0.9
GLUED_LOWER_SHARE = 0.85
GLUED_LETTERS = 9
DATA_DIGITS = 4
CLAUSE = 24
"""Letters between two commas of prose; a list of names, as of attributes, has shorter ones."""
BLOB_LIMIT = 180
LOOSE_BLOB_LIMIT = 100
"""For a blob between blanks; what lock files and keys hold is shorter, or named before it."""
LOOSE_BLOB_CHANGES = 0.45
"""Share of neighbours of different kinds; in names and paths far fewer change."""
BLOB_PASSAGE = 1024
"""Far enough back to see the link that a blob may be part of."""
UNBROKEN = (104, 120)
"""Least and most characters of a word at the block at which it is looked at ahead of time."""
BLOB_CLASS_SHARE = 0.08

ODD_SPACING = regex.compile(
    r"\s[.,;:](?!\d)|(?<!\s)[^\S\n]{2}(?!\s)|(?<!\.)\.\.(?!\.)|,\s*\.|\n\s*[.,]"
)
NEXT_QUOTED = regex.compile(r"""['"`],(?=['"`])""")
QUOTED_SIGNS = regex.compile(r"""(?:'[^'\s]{1,4}'|"[^"\s]{1,4}"|`[^`\s]{1,4}`)[,:;]?""")
LONG_LETTERS = 4
LONG_WORD = regex.compile(rf"\p{{L}}{{{LONG_LETTERS},}}")
DIGIT = re.compile("[0-9]")
FEWEST_LONG = ALNUM_LIMIT * PASSAGE / LONG_LETTERS
"""So many words hold more letters than any soup of signs."""
WORDS_PASSAGE = 256
"""Characters of the passage whose words are given."""
SURELY_INSIDE = slice((WORDS_PASSAGE - PASSAGE) // 2 + 1, 32)
"""Words that stand in the shorter passage as well: those before have a blank at least each."""
FIRST_WORDS = 20
"""Words that are looked at first; they hold enough long ones in nearly every text."""
SMALL_NUMBER = regex.compile(r"(?<!\d)\d{1,6}(?!\d)")
STRUCTURE = re.compile(r"[\\&|{}=<>`]|://")
GLUED = regex.compile(
    r"(?:[\p{Latin}\p{Cyrillic}\p{Greek},.;:!?'’()]|[\p{Arabic}\p{Hebrew}\p{Devanagari}،؛؟.])"
    f"{{{GLUED_LIMIT},}}"
)
WITHOUT_CASE = regex.compile(r"[\p{Arabic}\p{Hebrew}\p{Devanagari}]")
"""Scripts with blanks between words and neither case nor, mostly, letters for vowels."""
VOWELS = regex.compile("[aeiouyàáâäãåèéêëìíîïòóôöõùúûüýаеёиоуыэюяіїєαεηιουωάέήίόύώ]")
VOWEL_SHARES = (0.25, 0.6)
SHORTEST_SOUP = 64
PUNCTUATION = frozenset(",.;:!?'\"()")
PUNCTUATION_KINDS = 5
PUNCTUATION_SHARE = 0.85
NUMBERS_LIMIT = 18
NUMBER_LENGTHS = 3
NUMBERS = regex.compile(r"(?<![\d\n])\d{1,9}(?: \d{1,9}){17,}")
SYMBOL = regex.compile(
    r"[^\P{So}\u2500-\u25ff\U0001f1e6-\U0001f1ff]|[\u2200-\u22ff\u2a00-\u2aff]"
    r"|[\u3400-\u4dbf\U00020000-\U0003ffff]|[\u3131-\u318e]"
)
"""Pictures, mathematical signs, characters that few readers know, and letters of no syllable."""
SYMBOL_KINDS = ((SHORTEST_SOUP, 24), (112, 8))
"""Characters, more than half of them pictures, and how many different ones are too many."""
LETTERS_APART = regex.compile(r"(?<!\S)\p{L}(?: {1,3}[\p{L}.,;:'’!?\d-]){23,}(?!\S)")
LETTERS_APART_KINDS = 9
APART_BETWEEN = 22
"""Of 24 letters in a row so many have a blank on either side."""
HEX_LIMIT = 72
HEX_KINDS = 10
HEX_BLOB = regex.compile(r"(?<![\w:/.%=&?#+-])(?:0x)?(?:[0-9a-f]{73,}|[0-9A-F]{73,})(?![\w=])")
QUOTING = frozenset("\"'=(,")
"""Signs before a blob, without a blank, that make it a value or part of a link."""
DIGEST_CHARS = frozenset({96, 128})
LOOSE_BLOB = regex.compile(r"(?<!\S)[A-Za-z0-9+/=_-]" f"{{{LOOSE_BLOB_LIMIT},}}(?=\\s|$)")
NAMED = regex.compile(
    r"ssh-|ecdsa-|key|hash|sum\b|sha-?\d|digest|signature|token|cert|integrity|base-?64|encoded",
    regex.IGNORECASE,
)
"""What the text calls a blob that it means to show."""
NAME_REACH = 40
CHANGE = regex.compile("[A-Z](?=[a-z0-9])|[a-z](?=[A-Z0-9])|[0-9](?=[A-Za-z])")
BLOB_SIGNS = re.compile(rf"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{{{HEX_LIMIT + 1}}}")
BLOB = regex.compile(r"(?<![\w:/.%=&?#+-])[A-Za-z0-9+/=_-]" f"{{{BLOB_LIMIT},}}")
CLASSES = tuple(map(regex.compile, ("[A-Z]", "[a-z]", "[0-9]")))


def wordless(
    window: TextWindow, context: RequestContext, words: Sequence[str] = ()
) -> Finding | None:
    """Find a passage of loose signs, pictures or digits outside code."""
    text = window.last(PASSAGE)
    if window.in_fence or len(text) < SHORTEST_SOUP:
        return None
    wordy = hold_long_words(words)
    score = (0.0 if wordy else sign_soup(text)) or loose_punctuation(text)
    if not score:
        rows = 0.0 if wordy else digit_soup(text)
        rows = 0.0 if rows and reads_as_code(window) else rows
        score = rows or number_salad(text, context.prompt) or symbol_flood(text)
        score = 0.0 if score and is_source(text) else score
    if not score or context.asks(Topic.DRAWING, Topic.ENCODED):
        return None
    return Finding(Reason.SYMBOL_SOUP, score, 1.0, window.end - len(text), window.end)


def hold_long_words(words: Sequence[str]) -> bool:
    """Return True for words of a passage that can be neither a soup of signs nor one of digits."""
    long = [word for word in words[SURELY_INSIDE] if len(word) >= LONG_LETTERS]
    return sum(map(str.isalpha, long)) > max(LONG_WORDS_LIMIT * len(words), FEWEST_LONG)


def sign_soup(text: str) -> float:
    """Return how many kinds of signs stand without words, as a share of the limit."""
    if len(text) < SMALLEST_PASSAGE:
        return 0.0
    # The beginning alone nearly always holds more than enough.
    if sum(map(str.isalnum, text[:SHORTEST_SOUP])) > ALNUM_LIMIT * len(text):
        return 0.0
    solid = "".join(text.split())
    if len(solid) < (1 - BLANK_LIMIT) * len(text) or "```" in text:
        return 0.0
    if sum(map(str.isalnum, solid)) > ALNUM_LIMIT * len(solid) or are_quoted(solid):
        return 0.0
    signs = len({sign for sign in solid if sign.isascii() and not sign.isalnum()})
    return signs / SIGNS_LIMIT if signs > SIGNS_LIMIT else 0.0


def are_quoted(solid: str) -> bool:
    """Return True for signs in quotation marks, one by one: a list of operators."""
    first = NEXT_QUOTED.search(solid)
    # Up to the first comma the passage may begin inside a quotation.
    listed = solid[first.end() :] if first is not None else ""
    return sum(map(len, QUOTED_SIGNS.findall(listed))) > QUOTED_SHARE * len(solid)


def loose_punctuation(text: str) -> float:
    """Return how many kinds of stops and brackets stand without words, as a share of the limit."""
    tail = text[-SHORTEST_SOUP:]
    kinds = len([sign for sign in PUNCTUATION if sign in tail])
    if kinds < PUNCTUATION_KINDS:
        return 0.0
    solid = "".join(text[-SHORTEST_SOUP:].split())
    share = sum(sign in PUNCTUATION for sign in solid) / max(len(solid), 1)
    loose = share >= PUNCTUATION_SHARE and len(solid) * 2 >= SHORTEST_SOUP
    return kinds / PUNCTUATION_KINDS if loose else 0.0


def number_salad(text: str, prompt: str) -> float:
    """Return how many unsorted numbers stand in a row where the prompt has none."""
    if is_without_digits(text):
        return 0.0
    run = NUMBERS.search(text)
    if run is None or any(map(str.isdigit, prompt)):
        return 0.0
    numbers = run.group().split()
    sorted_ways = {int(later) > int(earlier) for earlier, later in pairwise(numbers)}
    irregular = len(set(map(len, numbers))) >= NUMBER_LENGTHS
    return len(numbers) / NUMBERS_LIMIT if irregular and len(sorted_ways) > 1 else 0.0


def is_without_digits(text: str) -> bool:
    """Return True for plain text without a digit; of other text only a pattern can tell."""
    return text.isascii() and DIGIT.search(text) is None


def symbol_flood(text: str) -> float:
    """Return how many different pictures or signs stand close together, as a share of the limit."""
    if text.isascii():
        return 0.0
    for reach, kinds in SYMBOL_KINDS:
        signs = SYMBOL.findall(text[-reach:])
        if len(signs) * 2 > reach and len(set(signs)) > kinds:
            return len(set(signs)) / kinds
    return 0.0


def digit_soup(text: str) -> float:
    """Return how oddly digits and fragments are spaced, as a share of the limit."""
    tokens = text.split()
    if len(tokens) < SMALLEST_SOUP_TOKENS or are_words(tokens):
        return 0.0
    if STRUCTURE.search(text) is not None:
        return 0.0
    if len(LONG_WORD.findall(text)) > LONG_WORDS_LIMIT * len(tokens):
        return 0.0
    if len({sign for sign in text if not sign.isspace()}) < SIGNS_LIMIT:
        return 0.0
    if is_counting(text):
        return 0.0
    mixed = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    share = len(ODD_SPACING.findall(text)) / len(tokens)
    return share / ODD_SPACING_LIMIT if mixed and share > ODD_SPACING_LIMIT else 0.0


def are_words(tokens: list[str]) -> bool:
    """Return True where the first few already hold as many long words as a whole soup may."""
    long = [word for word in tokens[:FIRST_WORDS] if len(word) >= LONG_LETTERS]
    return sum(map(str.isalpha, long)) > LONG_WORDS_LIMIT * len(tokens)


def is_counting(text: str) -> bool:
    """Return True where most numbers follow the one before them, as the days of a month do."""
    numbers = [int(number) for number in SMALL_NUMBER.findall(text)]
    return 2 * sum(later - earlier == 1 for earlier, later in pairwise(numbers)) > len(numbers)


def may_be_glued(sizes: list[int]) -> bool:
    """Return True for words so long, or so many of one letter, as only lost blanks make them."""
    # A word that is cut where the passage of the rule begins may be one letter more.
    return max(sizes, default=0) >= GLUED_LIMIT or sizes.count(1) >= APART_BETWEEN - 1


def glued_words(window: TextWindow, context: RequestContext) -> Finding | None:
    """Find prose whose blanks were lost."""
    text = window.last(PASSAGE)
    if window.in_fence or "`" in text:
        return None
    sizes = list(map(len, text.split()))
    apart = LETTERS_APART.search(text) if sizes.count(1) >= APART_BETWEEN else None
    if apart is not None and is_text_apart(apart.group()):
        if context.asks(Topic.GLUED, Topic.ENCODED, Topic.DRAWING, Topic.SPELLING):
            return None
        start = window.end - len(text) + apart.start()
        return Finding(Reason.SPACING_LOST, 1.0, 0.0, start, window.end)
    if max(sizes, default=0) < GLUED_LIMIT:
        return None
    for run in GLUED.finditer(text):
        if not is_glued_prose(run.group()) or is_unbroken_data(window):
            continue
        if not context.asks(Topic.GLUED, Topic.ENCODED):
            start = window.end - len(text) + run.start()
            length = run.end() - run.start()
            return Finding(
                Reason.SPACING_LOST, float(length), float(GLUED_LIMIT), start, start + length
            )
    return None


def is_unbroken_data(window: TextWindow) -> bool:
    """Return True for a passage without any blank in which digits stand again and again."""
    passages = (window.last(PASSAGE), window.last(BLOB_PASSAGE))
    return any(
        len(text.split()) == 1 and sum(map(str.isdigit, text)) >= DATA_DIGITS for text in passages
    )


def is_text_apart(run: str) -> bool:
    """Return True for letters with blanks between them that would make words without."""
    letters = [sign for sign in run.lower() if sign.isalpha()]
    vowels = len(VOWELS.findall("".join(letters))) / len(letters)
    in_order = sum(map(lt, letters, letters[1:])) > 0.8 * len(letters)
    mixed = len(set(letters)) >= LETTERS_APART_KINDS
    return mixed and not in_order and VOWEL_SHARES[0] <= vowels <= VOWEL_SHARES[1]


def is_glued_prose(run: str) -> bool:
    """Return True for a run of letters that has the mix of running words."""
    if len(WITHOUT_CASE.findall(run)) >= GLUED_LETTER_SHARE * len(run):
        return len(set(run)) > GLUED_LETTERS
    letters = [sign for sign in run.lower() if sign.isalpha()]
    lower = sum(map(str.islower, run))
    if len(letters) < GLUED_LETTER_SHARE * len(run) or lower < GLUED_LOWER_SHARE * len(run):
        return False
    if run.count(",") * CLAUSE > len(run):
        return False
    vowels = len(VOWELS.findall("".join(letters))) / len(letters)
    return len(set(letters)) > GLUED_LETTERS and VOWEL_SHARES[0] <= vowels <= VOWEL_SHARES[1]


def encoded_blob(window: TextWindow, context: RequestContext, *, last: bool) -> Finding | None:
    """Find a long encoded blob in an answer that nobody asked to be encoded."""
    text = window.last(BLOB_PASSAGE)
    if window.in_fence or not may_hold_blob(text):
        return None
    run, limit = blob_in(text, last=last)
    if run is None or is_part_of_more(text, run.start()):
        return None
    if limit == LOOSE_BLOB_LIMIT:
        excused = NAMED.search(text[: run.start()][-NAME_REACH:]) is not None
    else:
        excused = is_source(text[: run.start()]) or reads_as_code(window)
    if excused or context.asks(Topic.ENCODED, Topic.ENCODING):
        return None
    length = float(run.end() - run.start())
    start = window.end - len(text) + run.start()
    return Finding(Reason.ENCODED_BLOB, length, float(limit), start, start + int(length))


def blob_in(text: str, *, last: bool) -> tuple["regex.Match[str] | None", int]:
    """Return the first blob of a passage and the limit that it exceeds."""
    loose = next(filter(is_shuffled, LOOSE_BLOB.finditer(text)), None)
    if loose is not None:
        return loose, LOOSE_BLOB_LIMIT
    run = next(filter(is_odd_hex, HEX_BLOB.finditer(text)), None)
    if run is not None and (run.end() < len(text) or last):
        return run, HEX_LIMIT
    return next(filter(is_mixed_blob, BLOB.finditer(text)), None), BLOB_LIMIT


def is_part_of_more(text: str, at: int) -> bool:
    """Return True for a blob inside a literal or link, or one that was judged when it began."""
    before = text[:at]
    if len(text) == BLOB_PASSAGE and not any(map(str.isspace, before)):
        return True
    inside = "" if before[-1:].isspace() else "".join(before.split()[-1:])
    return bool(QUOTING.intersection(inside))


def may_hold_blob(text: str) -> bool:
    """Return True where more signs of a blob stand in a row than the least limit allows."""
    at = 0
    while len(text) - at > HEX_LIMIT:
        # The last blank that is near enough: what lies before it is short.
        at = text.rfind(" ", at, at + HEX_LIMIT + 1) + 1
        if not at:
            return BLOB_SIGNS.search(text) is not None
    return False


def is_odd_hex(run: "regex.Match[str]") -> bool:
    """Return True for hexadecimal digits that are too many for a digest or not as long as one."""
    text = run.group()
    mixed = not text.isdigit() and len(set(text)) >= HEX_KINDS
    return len(text) not in DIGEST_CHARS and mixed


def is_newly_unbroken(window: TextWindow) -> bool:
    """Return True at the one block with which a word of letters and digits grows too long."""
    if " " in window.block:
        return False
    text = window.last(UNBROKEN[1])
    length = len(text) - 1 - max(text.rfind(" "), text.rfind("\n"))
    return UNBROKEN[0] <= length < UNBROKEN[1] and text[-length:].isascii()


def is_shuffled(run: "regex.Match[str]") -> bool:
    """Return True for a blob whose characters are of another kind again and again."""
    changes = len(CHANGE.findall(run.group()))
    return is_mixed_blob(run) and changes >= LOOSE_BLOB_CHANGES * (run.end() - run.start())


def is_mixed_blob(run: "regex.Match[str]") -> bool:
    """Return True for a blob of capitals, small letters and digits."""
    blob = run.group()
    return all(len(kind.findall(blob)) >= BLOB_CLASS_SHARE * len(blob) for kind in CLASSES)
