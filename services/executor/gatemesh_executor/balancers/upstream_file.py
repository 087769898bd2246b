"""The text of an nginx upstream file: one `server ADDRESS ...;` a line (pure)."""

import re
from collections.abc import Mapping

LINE = re.compile(r"^(?P<indent>[ \t]*)server[ \t]+(?P<address>[^\s;#]+)(?P<rest>[^;#\n]*);")
WEIGHT = re.compile(r"weight=(\d+)")


def servers_of(text: str) -> dict[str, tuple[bool, int]]:
    """Return whether each server is down, and its weight, by address."""
    found = (LINE.match(line) for line in text.splitlines())
    return {match["address"]: _treatment(match["rest"]) for match in found if match}


def with_servers(text: str, wanted: Mapping[str, tuple[bool, int]]) -> str:
    """Return the text with these servers down or up, at these weights; all else as it is."""
    return "".join(_line(line, wanted) for line in text.splitlines(keepends=True))


def _treatment(rest: str) -> tuple[bool, int]:
    words = rest.split()
    weights = [int(match[1]) for word in words if (match := WEIGHT.fullmatch(word))]
    return "down" in words, weights[-1] if weights else 1


def _line(line: str, wanted: Mapping[str, tuple[bool, int]]) -> str:
    match = LINE.match(line)
    if match is None or match["address"] not in wanted:
        return line
    down, weight = wanted[match["address"]]
    kept = [word for word in match["rest"].split() if word != "down" and not WEIGHT.fullmatch(word)]
    words = [match["address"], *kept, f"weight={weight}", *(["down"] if down else [])]
    return f"{match['indent']}server {' '.join(words)};{line[match.end() :]}"
