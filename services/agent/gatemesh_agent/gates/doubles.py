"""Pieces of the stream that came twice: words, groups of words, or single characters."""

import re
from itertools import pairwise
from operator import eq

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import CHECKPOINT, TextWindow
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

TILE = re.compile(r"(.{2,10})\1", re.DOTALL)
TILED = 64
TILED_PASSAGE = 192
TILED_SHARE = 0.72
TILE_KINDS = 10
SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？।])\s*|\n+")
SENTENCE_END = re.compile(r"[^\W\d_][.!?。！？।]$")
SENTENCES_PASSAGE = 640
SHORTEST_SENTENCE = 16
SENTENCES = 3
THRICE = 4
PARAGRAPH = 60
PARAGRAPHS = 2
GROWN_CHARS = 1536
GROWN_STEPS = 4
GROWN_LENGTH = 16
SUBFOLDER = re.compile(r"[^/\\.:]?[/\\.:]+\w")
"""What joins a folder, a domain or a section to the one within it."""
HEADS = (2, 4)
"""Characters of the beginning that each new beginning shows."""

BLANKS = r" \t\n\r\f\v\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
PIECE = re.compile(rf"[\u3040-\u30ff\u3400-\u9fff]|[^{BLANKS}\u3040-\u30ff\u3400-\u9fff]+")
AABB = re.compile(r"(?<![\u3400-\u9fff])([\u3400-\u9fff])\1([\u3400-\u9fff])\2(?![\u3400-\u9fff])")
"""A Chinese word of its own, made of two doubled characters."""
ODD_BLANK = re.compile("[\x1c-\x1f]")
"""Characters at which Python splits a text; they are no blanks."""
TWICE = regex.compile(r"(\p{L})\1")


def doubled_pieces(window: TextWindow, context: RequestContext, words: list[str]) -> Finding | None:
    """Find a passage in which each piece stands twice, as when stream events are sent twice."""
    text = window.last(PASSAGE)
    ascii_only = is_cut_at_blanks(text)
    text = text if ascii_only else AABB.sub("", text)
    pieces = words if ascii_only else PIECE.findall(text)
    # Cells of a table may be alike.
    share = 0.0 if text.count("|") > CELLS else doubled_share(pieces)
    if share < SHARE and not has_doubled_letters(text):
        return None
    if context.asks(Topic.REPEATING, Topic.PLAYFUL):
        return None
    start = max(window.end - PASSAGE, 0)
    return Finding(Reason.DUPLICATED_PIECES, max(share, SHARE), SHARE, start, window.end)


def doubled_chunks(window: TextWindow, context: RequestContext) -> Finding | None:
    """Find pieces of a few characters that each stand twice, wherever words begin."""
    if tiled_share(window.last(TILED)) < TILED_SHARE:
        return None
    text = window.last(TILED_PASSAGE)
    tiles = TILE.findall(text)
    kinds = {tile for tile in tiles if any(map(str.isalpha, tile))}
    if tiled_share(text) < TILED_SHARE or len(kinds) < TILE_KINDS or "|" in text:
        return None
    if context.asks(Topic.REPEATING, Topic.PLAYFUL, Topic.ENCODED):
        return None
    start = window.end - len(text)
    return Finding(Reason.DUPLICATED_PIECES, tiled_share(text), TILED_SHARE, start, window.end)


def tiled_share(text: str) -> float:
    """Return which share of a text is made of pieces that stand twice side by side."""
    return 2 * sum(map(len, TILE.findall(text))) / max(len(text), 1)


def doubled_paragraphs(window: TextWindow, context: RequestContext) -> Finding | None:
    """Find several paragraphs that each stand twice in a row."""
    if window.in_fence or "\n" not in window.last(CHECKPOINT):
        return None
    lines = [line for line in window.tail.split("\n") if len(line) >= PARAGRAPH]
    twice = {one for one, other in pairwise(lines) if one == other and SENTENCE_END.search(one)}
    if len(twice) < PARAGRAPHS or context.asks(Topic.REPEATING, Topic.PLAYFUL):
        return None
    return Finding(
        Reason.DUPLICATED_PIECES, float(len(twice)), float(PARAGRAPHS), window.base, window.end
    )


def doubled_sentences(window: TextWindow, context: RequestContext) -> Finding | None:
    """Find sentences that each stand twice in a row."""
    text = window.last(SENTENCES_PASSAGE)
    # The end of a sentence that stands twice stands twice as well; few other texts pass this.
    if window.in_fence or text.find(text[-SHORTEST_SENTENCE:]) >= len(text) - SHORTEST_SENTENCE:
        return None
    sentences = [part for part in SENTENCE.split(text) if len(part) >= SHORTEST_SENTENCE]
    twice = {one for one, other in pairwise(sentences) if one == other and SENTENCE_END.search(one)}
    if len(twice) < SENTENCES or context.asks(Topic.REPEATING, Topic.PLAYFUL):
        return None
    start = window.end - len(text)
    return Finding(Reason.DUPLICATED_PIECES, float(len(twice)), float(SENTENCES), start, window.end)


def tripled_words(window: TextWindow, context: RequestContext, words: list[str]) -> Finding | None:
    """Find several words that each stand three times in a row."""
    if sum(map(eq, words, words[1:])) < 2 * THRICE:
        return None
    rows = zip(words, words[1:], words[2:], strict=False)
    thrice = {one for one, two, three in rows if one == two == three and one.isalpha()}
    if len(thrice) < THRICE or context.asks(Topic.REPEATING, Topic.PLAYFUL):
        return None
    start = max(window.end - PASSAGE, 0)
    return Finding(Reason.DUPLICATED_PIECES, float(len(thrice)), float(THRICE), start, window.end)


def grown_text(window: TextWindow, context: RequestContext) -> Finding | None:
    """Find an answer that begins anew again and again, each time a little longer."""
    text = window.tail
    if window.base or window.in_fence or len(text) > GROWN_CHARS:
        return None
    if not any(grown_steps(text, size) > GROWN_STEPS for size in HEADS):
        return None
    if context.asks(Topic.REPEATING, Topic.PLAYFUL, Topic.DRAWING, Topic.SPELLING):
        return None
    return Finding(Reason.DUPLICATED_PIECES, float(GROWN_STEPS), 0.0, 0, window.end)


def grown_steps(text: str, size: int) -> int:
    """Return how often the text begins anew with what was there before and more."""
    head = text[:size]
    if text.count(head) <= GROWN_STEPS or not head.strip():
        return 0
    *parts, _ = map(str.strip, text.split(head)[1:])
    if len(set(parts)) < len(parts) / 2 or not parts:
        return 0
    grown = sum(has_grown(one, later) for one, later in pairwise(parts))
    whole = len(parts[-1]) >= GROWN_LENGTH and grown >= len(parts) - 2
    return grown if whole else 0


def has_grown(one: str, later: str) -> bool:
    """Return True for a text that goes on where the earlier one ended, but not as paths do."""
    if not later.startswith(one) or later == one:
        return False
    return SUBFOLDER.match(later, max(len(one) - 1, 0)) is None


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
