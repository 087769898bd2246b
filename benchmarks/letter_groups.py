"""Make the table of letter groups of English words that the text gate uses; print it as Python.

    python benchmarks/letter_groups.py --cache DIR [--write FILE]

Sources: the word lists of Debian (`wamerican-large`, `wbritish-large`) and the English passages
of `clean_sources.py`. A group of three letters is known where one word in 10,000 of the lists
holds it, or a word that the passages use five times; a word edge counts as a letter.
"""

import argparse
import base64
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

# Run as a script, only this folder is on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.clean_sources import english_passages, fetched_package

from gatemesh_agent.gates.letters import LETTERS, groups_of, plain_words

LISTS = ("wamerican-large", "wbritish-large")
LISTED_SHARE = 1e-4
USED = 5
SHORT, SHORT_USED = 2, 10
PLAIN = re.compile("[a-z]{3,}")
UNITS = """
    cm mm km kg mg ml hz kb mb gb tb hp ft oz lb pm am tv pc vs th st nd rd ok ah ha hi ex ad js
    ts py io ai ui os ip id x y z n e g eg ie ed uh hm ll ve re de la le al et
"""
"""Units, abbreviations and names that sentences hold in small letters."""
WIDTH = 88


def listed(folder: Path) -> Iterator[str]:
    """Yield the plain words of the lists."""
    for package in LISTS:
        found = fetched_package(folder, package)
        for path in sorted(found.glob("usr/share/dict/*")) if found else ():
            yield from filter(PLAIN.fullmatch, path.read_text(encoding="utf-8").split())


def known_groups(words: Iterable[str], used: Counter[str]) -> set[int]:
    """Return the groups that lists and passages vouch for."""
    counts: Counter[int] = Counter()
    total = 0
    for word in words:
        counts.update(groups_of(word))
        total += 1
    known = {group for group, count in counts.items() if count >= LISTED_SHARE * total}
    for word, count in used.items():
        if count >= (SHORT_USED if len(word) <= SHORT else USED):
            known.update(groups_of(word))
    for word in UNITS.split():
        known.update(groups_of(word))
    return known


def packed(known: set[int]) -> str:
    """Return one bit per group, as text."""
    bits = bytearray((len(LETTERS) ** 3 + 7) // 8)
    for group in known:
        bits[group >> 3] |= 1 << (group & 7)
    return base64.b64encode(bytes(bits)).decode()


def module(table: str) -> str:
    """Return the module that holds the table."""
    rows = [table[at : at + WIDTH] for at in range(0, len(table), WIDTH)]
    lines = "\n".join(f'    "{row}"' for row in rows)
    return (
        '"""Groups of three letters that English words hold: one bit each, packed. Made by\n'
        '`benchmarks/letter_groups.py`.\n"""\n\n'
        f"ENGLISH = (\n{lines}\n)\n"
    )


def main() -> None:
    """Make the table."""
    parser = argparse.ArgumentParser(description="Make the table of letter groups.")
    parser.add_argument("--cache", type=Path, required=True, metavar="DIR")
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    folder = options.cache.resolve()
    used = Counter(
        word for passage in english_passages(folder) for word in plain_words(passage.text)
    )
    text = module(packed(known_groups(listed(folder), used)))
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
