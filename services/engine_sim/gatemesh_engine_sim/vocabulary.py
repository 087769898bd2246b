"""A small reversible tokenizer: known pieces have ids, every other text falls back to bytes."""

import re
import string
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gatemesh_engine_sim.steps import SPECIAL_TOKENS

VOCABULARY_SIZE = 49_152
"""Of the recorded model, so that flat distributions have its ln(V) = 10.80."""

BYTE_BASE = VOCABULARY_SIZE - 256
FIRST_FREE_ID = 300

PIECE = re.compile(
    r" ?[A-Za-z\u00c0-\u024f]+|[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]| ?\d|\n+| ?[^\w\s]|\s|.",
    re.DOTALL,
)


LETTERS = string.ascii_lowercase
PAIRS = tuple(first + second for first in (*LETTERS, " ") for second in LETTERS)
"""Known to every vocabulary, so that foreign words do not cost a token per letter."""


class Token(NamedTuple):
    """A token's own text, empty for part of a character, and its id."""

    text: str
    token_id: int


def split(text: str) -> list[str]:
    """The pieces of a text: words with their blank, single digits, marks and ideographs."""
    return PIECE.findall(text)


class Vocabulary:
    """Maps pieces to ids and back; `decode(encode(text))` is the text."""

    def __init__(self, recorded: Iterable[tuple[str, int]], pieces: Iterable[str]) -> None:
        self._ids = {token: number for number, token in enumerate(SPECIAL_TOKENS)}
        for token, token_id in recorded:
            if token and token_id < BYTE_BASE:
                self._ids.setdefault(token, token_id)
        self._tokens = {token_id: token for token, token_id in self._ids.items()}
        self._add(pieces)
        self._add(PAIRS)

    def _add(self, pieces: Iterable[str]) -> None:
        free = (number for number in range(FIRST_FREE_ID, BYTE_BASE) if number not in self._tokens)
        for piece in pieces:
            if piece not in self._ids:
                self._ids[piece] = number = next(free)
                self._tokens[number] = piece

    def token_id(self, piece: str) -> int:
        """The id of a known piece; the id of its first byte otherwise."""
        return self._ids.get(piece, BYTE_BASE + _bytes_of(piece or "\0")[0])

    def tokens(self, text: str) -> list[Token]:
        """The text in tokens; special tokens in it are text like any other."""
        found: list[Token] = []
        for piece in split(text):
            known = self._ids.get(piece)
            found.extend(self._spell(piece) if known is None else [Token(piece, known)])
        return found

    def _spell(self, piece: str) -> Iterator[Token]:
        """A piece without an id: by pairs of letters, or by bytes that show with their last one."""
        at = 0
        while at < len(piece):
            pair = piece[at : at + 2]
            if len(pair) > 1 and pair in self._ids:
                yield Token(pair, self._ids[pair])
                at += 2
                continue
            *first, last = _bytes_of(piece[at])
            yield from (Token("", BYTE_BASE + byte) for byte in first)
            yield Token(piece[at], BYTE_BASE + last)
            at += 1

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        return [token.token_id for token in self.tokens(text)]

    def decode(self, ids: Iterable[int], *, show_special: bool = False) -> str:
        """The text of token ids; unknown ids are U+FFFD, special tokens hidden unless asked."""
        raw = bytearray()
        for token_id in ids:
            if token_id >= BYTE_BASE:
                raw.append(token_id - BYTE_BASE)
            elif show_special or token_id >= len(SPECIAL_TOKENS):
                raw += _bytes_of(self._tokens.get(token_id, "\ufffd"))
        return raw.decode("utf-8", "replace")

    def chat_ids(
        self, messages: Iterable[tuple[str, str]], opened: str = "assistant\n"
    ) -> list[int]:
        """The prompt of a conversation (role, text), and a turn that is opened but not ended."""
        ids: list[int] = []
        for role, text in messages:
            ids += [1, *self.encode(f"{role}\n{text}"), 2, *self.encode("\n")]
        return [*ids, 1, *self.encode(opened)] if opened else ids

    def after(self, piece: str) -> str:
        """The token with the next id: what a vocabulary shifted by one emits instead."""
        wanted = self.token_id(piece)
        return next(
            (
                self._tokens[number]
                for number in range(wanted + 1, BYTE_BASE)
                if number in self._tokens
            ),
            "!",
        )


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
