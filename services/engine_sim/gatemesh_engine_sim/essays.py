"""Long running text, for answers that have to last: prose of Python's documentation."""

import itertools
import re
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache

WANTED = re.compile(r"\b(?:length (\d{2,5})|(\d{2,5}) words)\b")
"""What asks for a long answer: "Tell me about the sea, length 900.", "Write 900 words."."""

SHORTEST_CHARS = 80
PROSE_SHARE = 0.92
"""Of a paragraph's characters that are letters and blanks; code and tables have fewer."""

OPENINGS = 16
"""Places where an essay may begin; few, so that what is painted once is used again."""


def wanted_words(question: str) -> int:
    """How many words a question asks for; 0 where it names no number."""
    found = WANTED.search(question)
    return int(found[1] or found[2]) if found else 0


def essay(question: str, words: int) -> Iterator[str]:
    """The paragraphs of an answer of about so many words; the same question has the same ones."""
    known = paragraphs()
    first = zlib.crc32(question.encode("utf-8", "surrogatepass")) % OPENINGS
    place = first * (len(known) // OPENINGS)
    written = 0
    for paragraph in itertools.islice(itertools.cycle(known), place, None):
        yield paragraph if not written else f"\n\n{paragraph}"
        written += len(paragraph.split())
        if written >= words:
            return


@lru_cache(maxsize=1)
def paragraphs() -> tuple[str, ...]:
    """Every paragraph of prose, each once."""
    from pydoc_data.topics import topics  # noqa: PLC0415 - large, and few engines are asked

    parts = itertools.chain(*(topics[name].split("\n\n") for name in sorted(topics)))
    return tuple(dict.fromkeys(prose(parts)))


def prose(parts: Iterable[str]) -> Iterator[str]:
    """The parts that are sentences, each in one line."""
    for part in parts:
        text = " ".join(part.split())
        if len(text) >= SHORTEST_CHARS and is_prose(text):
            yield text


def is_prose(text: str) -> bool:
    """True for whole sentences of plain words."""
    plain = sum(letter.isalpha() or letter == " " for letter in text)
    whole = text[0].isupper() and text.endswith(".") and text.isascii()
    return whole and plain >= PROSE_SHARE * len(text)
