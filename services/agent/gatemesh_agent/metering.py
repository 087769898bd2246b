"""Counts the tokens of an answer on its way out: as the engine says, else by its events. Pure."""

import re

TAIL_BYTES = 4096
"""An answer's end of this length holds what the engine says of its use."""
USAGE = re.compile(rb'(?<!\\)"usage"\s*:\s*\{')
COUNT = re.compile(rb'"(total|prompt|completion|input|output)_tokens"\s*:\s*(\d{1,12})')
EVENT = b"data: "


class Meter:
    """Sees the bytes of one answer."""

    __slots__ = ("_events", "_tail")

    def __init__(self) -> None:
        self._tail = b""
        self._events = 0

    def see(self, data: bytes) -> None:
        """Take in the next bytes; keeps no more than the end of them."""
        self._events += data.count(EVENT)
        size = len(data)
        if size >= TAIL_BYTES:
            self._tail = data[-TAIL_BYTES:]
        else:
            self._tail = self._tail[size - TAIL_BYTES :] + data

    def tokens(self) -> int:
        """Return how many tokens the answer cost: what the engine says, else one an event."""
        found = list(USAGE.finditer(self._tail))
        return used(self._tail[found[-1].end() :]) if found else self._events


def used(usage: bytes) -> int:
    """Return the tokens of prompt and answer together; a total wins."""
    counts: dict[bytes, int] = {}
    for name, count in COUNT.findall(usage):
        # Details of a part come behind it and repeat its names.
        counts.setdefault(name, int(count))
    if b"total" in counts:
        return counts[b"total"]
    return sum(counts.values())
