"""Classes of characters, counted without a pattern where a text is plain ASCII. Pure."""

import regex

ASCII_CODES = range(128)


class SignClass:
    """A class of characters, named by a pattern of one character, and how to count them."""

    __slots__ = ("_dropped", "_runs")

    def __init__(self, signs: str) -> None:
        one = regex.compile(signs)
        self._runs = regex.compile(f"{signs}+")
        self._dropped = {code: None for code in ASCII_CODES if one.match(chr(code)) is not None}

    def count(self, text: str) -> int:
        """Return how many characters of a text are of this class."""
        if text.isascii():
            return len(text) - len(text.translate(self._dropped))
        return sum(map(len, self._runs.findall(text)))
