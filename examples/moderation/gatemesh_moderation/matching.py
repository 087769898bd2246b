"""Finds phrases in a text that arrives in pieces, in one pass whatever their number. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import ahocorasick

from gatemesh_moderation.folding import Folded, Folder
from gatemesh_moderation.wordlists import Phrase

UNSPACED = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17FF)),
    *((0x2E80, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7FF)),
    *((0xF900, 0xFAFF), (0x20000, 0x3FFFF)),
)
"""Thai, Lao, Burmese, Khmer, Han, Kana and Hangul: words there are not parted by blanks."""


@dataclass(frozen=True, slots=True)
class Match:
    """A phrase, and where it stands in the text as it came."""

    phrase: Phrase
    begin: int
    end: int
    """After its last character."""


class Phrases:
    """Phrases made ready to be looked for."""

    def __init__(self, phrases: Iterable[Phrase]) -> None:
        self.automaton = ahocorasick.Automaton()
        self.longest = 0
        for phrase in phrases:
            self.automaton.add_word(phrase.text, phrase)
            self.longest = max(self.longest, len(phrase.text))
        self.automaton.make_automaton()

    def matches(self, text: str) -> list[Match]:
        """Return every match in a whole text."""
        search = Search(self)
        return [*search.feed(text), *search.end()]


class Search:
    """Looks for phrases in one text; however it is cut, the matches are the same."""

    def __init__(self, phrases: Phrases) -> None:
        self._longest = phrases.longest
        self._folder = Folder()
        self._search: Any = phrases.automaton.iter("") if phrases.longest else None
        self._begun = 0
        """Folded characters before those that are kept."""
        self._text = ""
        self._places: list[int] = []
        self._open: list[tuple[int, Phrase]] = []
        """Matches at the very end, whose next character is not known."""

    def feed(self, text: str) -> list[Match]:
        """Take a piece; return the matches that are certain now, by where they end."""
        return self._take(self._folder.feed(text)) if self._search is not None else []

    def end(self) -> list[Match]:
        """Return what only the end makes certain."""
        if self._search is None:
            return []
        found = self._take(self._folder.end())
        last = [self._match(at, phrase) for at, phrase in self._open if self._begins(at, phrase)]
        self._open = []
        return found + last

    def _take(self, folded: Folded) -> list[Match]:
        if not folded.text:
            return []
        self._text += folded.text
        self._places += folded.places
        self._search.set(folded.text)
        candidates = [*self._open, *self._search]
        last = self._begun + len(self._text) - 1
        self._open = [one for one in candidates if one[0] == last]
        found = [
            self._match(at, phrase)
            for at, phrase in candidates
            if at < last and self._begins(at, phrase) and self._ends(at)
        ]
        self._forget()
        return found

    def _forget(self) -> None:
        """Keep what a phrase that goes on may still need."""
        spare = len(self._text) - self._longest - 1
        if spare > 0:
            self._begun += spare
            self._text = self._text[spare:]
            del self._places[:spare]

    def _begins(self, at: int, phrase: Phrase) -> bool:
        """Return True when a match does not begin within a word."""
        first = at - self._begun - len(phrase.text) + 1
        return first == 0 or not joined(self._text[first - 1], self._text[first])

    def _ends(self, at: int) -> bool:
        """Return True when a match does not end within a word."""
        last = at - self._begun
        return not joined(self._text[last], self._text[last + 1])

    def _match(self, at: int, phrase: Phrase) -> Match:
        last = at - self._begun
        first = last - len(phrase.text) + 1
        following = last + 1
        end = self._places[following] if following < len(self._places) else self._folder.place
        return Match(phrase, self._places[first], end)


def joined(one: str, other: str) -> bool:
    """Return True when two characters belong to one word of a script that parts its words."""
    return in_word(one) and in_word(other)


def in_word(character: str) -> bool:
    """Return True for a letter or digit of a script that parts its words by blanks."""
    code = ord(character)
    return character.isalnum() and not any(low <= code <= high for low, high in UNSPACED)
