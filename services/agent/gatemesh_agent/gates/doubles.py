"""Pieces of the stream that came twice: words, groups of words, or single characters."""

import re
from operator import eq

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import TextWindow
from gatemesh_common.messages import Reason

PASSAGE = 256
SHORT_PASSAGE = 96
SHORT_SHARE = 0.85
SHORT_DISTINCT_SHARE = 0.65
PIECES = 14
SHARE = 0.6
DISTINCT_PIECES = 6
USUAL_DISTINCT_SHARE = 0.72
"""Texts of which so many pieces differ cannot hold that many doubles."""
CELLS = 5
SIZES = (6, 5, 4, 3, 2, 1)
STOPS = ",.;:!?"
TAIL = 64
TAIL_SHARE = 0.35
TWICE_LETTERS = 32
TWICE_SHARE = 0.85
TWICE_KINDS = 8

BLANKS = r" \t\n\r\f\v\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
PIECE = re.compile(rf"[\u3040-\u30ff\u3400-\u9fff]|[^{BLANKS}\u3040-\u30ff\u3400-\u9fff]+")
ODD_BLANK = re.compile("[\x1c-\x1f]")
"""Characters at which Python splits a text; they are no blanks."""
TWICE = regex.compile(r"(\p{L})\1")


def doubled_pieces(window: TextWindow, context: RequestContext, words: list[str]) -> Finding | None:
    """Find a passage in which each piece stands twice, as when stream events are sent twice."""
    text = window.last(PASSAGE)
    pieces = words if is_cut_at_blanks(text) else PIECE.findall(text)
    # Cells of a table may be alike.
    share = 0.0 if text.count("|") > CELLS else doubled_share(pieces)
    if share < SHARE and not has_doubled_letters(text):
        return None
    if context.asks(Topic.REPEATING, Topic.PLAYFUL):
        return None
    start = window.end - len(text)
    return Finding(Reason.DUPLICATED_PIECES, max(share, SHARE), SHARE, start, window.end)


def doubled_words(window: TextWindow, context: RequestContext) -> Finding | None:
    """Find words that nearly all stand twice, in a passage too short for a smaller share."""
    text = window.last(SHORT_PASSAGE)
    words = text.split()
    # A quick look that lets nearly every passage pass; its first and last word may be cut.
    if len(words) < PIECES or len(set(words)) > SHORT_DISTINCT_SHARE * len(words):
        return None
    share = 0.0 if "|" in text else doubled_share(words[1:-1])
    if share < SHORT_SHARE or context.asks(Topic.REPEATING, Topic.PLAYFUL):
        return None
    start = window.end - len(text)
    return Finding(Reason.DUPLICATED_PIECES, share, SHORT_SHARE, start, window.end)


def is_cut_at_blanks(text: str) -> bool:
    """Return True for a text whose pieces are its words; others have signs that are pieces."""
    return text.isascii() and (text.isprintable() or ODD_BLANK.search(text) is None)


def doubled_share(pieces: list[str]) -> float:
    """Return which share of the pieces belongs to groups that stand twice; 0 for a mere loop."""
    if len(pieces) < PIECES or len(set(pieces)) > USUAL_DISTINCT_SHARE * len(pieces):
        return 0.0
    groups = doubled_groups(pieces)
    words = {piece for group in groups for piece in group if piece.strip(STOPS).isalpha()}
    if len(words) < DISTINCT_PIECES:
        return 0.0
    return 2 * sum(map(len, groups)) / len(pieces)


def doubled_groups(pieces: list[str]) -> list[tuple[str, ...]]:
    """Return the groups of pieces that are followed by themselves, the longest first."""
    found = []
    at = 0
    while at < len(pieces):
        size = 0
        # A group that follows itself begins anew within its longest size.
        if pieces[at] in pieces[at + 1 : at + 1 + SIZES[0]]:
            size = next((count for count in SIZES if is_doubled(pieces, at, count)), 0)
        if size:
            found.append(tuple(pieces[at : at + size]))
        at += 2 * size or 1
    return found


def is_doubled(pieces: list[str], at: int, size: int) -> bool:
    """Return True where a group of pieces that holds a letter follows itself."""
    group = pieces[at : at + size]
    return group == pieces[at + size : at + 2 * size] and any(map(str.isalpha, "".join(group)))


def has_doubled_letters(text: str) -> bool:
    """Return True for a passage in which each character stands twice."""
    tail = text[-TAIL:]
    if sum(map(eq, tail, tail[1:])) < TAIL_SHARE * len(tail):
        return False
    letters = sum(map(str.isalpha, text))
    twice = TWICE.findall(text)
    enough = letters >= TWICE_LETTERS and 2 * len(twice) >= TWICE_SHARE * letters
    return enough and len(set(twice)) > TWICE_KINDS
