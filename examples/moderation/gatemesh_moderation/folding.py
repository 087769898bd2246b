"""Makes spellings of one phrase alike, piece by piece. Pure.

NFKC and case folding (full-width letters, ligatures, accents written in two), no invisible
characters, one blank for any run of white space. However a text is cut, the result is the same.
"""

import unicodedata
from functools import lru_cache
from typing import NamedTuple

LONGEST_CLUSTER = 32
"""Characters; a longer pile of accents is cut here, wherever it arrives."""
JAMO = range(0x1160, 0x1200)
"""Hangul vowels and endings, which join what is before them."""


class Folded(NamedTuple):
    """A piece of folded text."""

    text: str
    places: list[int]
    """For each character, where it was in the text as it came."""


class Folder:
    """Folds one text as it arrives."""

    def __init__(self) -> None:
        self._cluster = ""
        self._place = 0
        self._after_blank = False

    @property
    def place(self) -> int:
        """Characters of the text that are folded."""
        return self._place

    def feed(self, text: str) -> Folded:
        """Return what is certain so far; the last character may still be joined by an accent."""
        folded = Folded("", [])
        characters: list[str] = []
        for character in text:
            if self._cluster and ends_before(self._cluster, character):
                self._take(characters, folded.places)
            self._cluster += character
        return folded._replace(text="".join(characters))

    def end(self) -> Folded:
        """Return the rest, at the end of the text."""
        characters: list[str] = []
        places: list[int] = []
        self._take(characters, places)
        return Folded("".join(characters), places)

    def _take(self, characters: list[str], places: list[int]) -> None:
        for character in folded_cluster(self._cluster):
            blank = character == " "
            if not (blank and self._after_blank):
                characters.append(character)
                places.append(self._place)
            self._after_blank = blank
        self._place += len(self._cluster)
        self._cluster = ""


def fold(text: str) -> str:
    """Return a whole text folded."""
    folder = Folder()
    return folder.feed(text).text + folder.end().text


def ends_before(cluster: str, character: str) -> bool:
    """Return True when a character begins anew and cannot change what is before it."""
    return starts(character) or len(cluster) >= LONGEST_CLUSTER


@lru_cache(maxsize=2**14)
def starts(character: str) -> bool:
    """Return True when normalisation never joins a character to the one before it."""
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.category(first)[0] != "M" and ord(first) not in JAMO


@lru_cache(maxsize=2**14)
def folded_cluster(cluster: str) -> str:
    """Return one character with its accents, folded; white space as a blank."""
    folded = unicodedata.normalize("NFKC", cluster).casefold()
    return "".join(
        " " if character.isspace() else character
        for character in folded
        if unicodedata.category(character) != "Cf"
    )
