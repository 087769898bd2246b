"""Reads lists of phrases: one a line, `#` begins a comment, UTF-8, `NAME.LANGUAGE.txt`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatemesh_moderation.folding import fold

OWN_FOLDER = Path(__file__).with_name("lists")
SHORTEST_PHRASE = 2
"""Characters, folded; a single letter would flag nearly everything."""


class ListError(ValueError):
    """A list that cannot be used; says which file and line, and what to do."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """One entry of a list."""

    text: str
    """Folded."""
    source: str
    """File name without its ending: it travels in verdicts, the phrase does not."""
    line: int


def read_lists(names: Iterable[str], folders: Sequence[Path]) -> tuple[Phrase, ...]:
    """Return the phrases of the named lists, in every language, from every folder.

    Raises:
        ListError: a list is missing, empty or damaged.
    """
    found: dict[str, Phrase] = {}
    for path in (path for name in names for path in files_of(name, folders)):
        for phrase in read_list(path):
            other = found.setdefault(phrase.text, phrase)
            if other is not phrase and other.source == phrase.source:
                raise ListError(
                    f"{path}, line {phrase.line}: reads like line {other.line}; drop one of them"
                )
    return tuple(found.values())


def files_of(name: str, folders: Sequence[Path]) -> list[Path]:
    """Return the files of a list.

    Raises:
        ListError: there is none.
    """
    paths = sorted(path for folder in folders for path in folder.glob(f"{name}.*.txt"))
    if not paths:
        places = ", ".join(map(str, folders))
        raise ListError(f"there is no list {name!r}: no file {name}.LANGUAGE.txt in {places}")
    return paths


def read_list(path: Path) -> Iterator[Phrase]:
    """Yield the phrases of one file.

    Raises:
        ListError: it is not UTF-8, holds no phrase, or one that is too short.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ListError(f"{path} cannot be read ({error}); save it as UTF-8") from error
    count = 0
    for number, line in enumerate(lines, 1):
        written = line.partition("#")[0].strip()
        if not written:
            continue
        text = fold(written).strip()
        if len(text) < SHORTEST_PHRASE:
            raise ListError(
                f"{path}, line {number}: {written!r} is shorter than {SHORTEST_PHRASE} characters "
                "and would flag nearly everything; write a longer phrase"
            )
        count += 1
        yield Phrase(text, path.name.removesuffix(".txt"), number)
    if not count:
        raise ListError(f"{path} holds no phrase; add one or leave the list out")
