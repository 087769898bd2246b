"""Counts the tokens of an answer on its way out: as the engine says, else by its events. Pure."""

import re

USAGE_BYTES = 1024
"""So much behind the word holds what the engine says of its use."""
TAIL_BYTES = 64
"""Longer than the word: it may be cut into two pieces."""
WORD = b'"usage"'
USAGE = re.compile(rb'(?<!\\)"usage"\s*:\s*\{')
COUNT = re.compile(rb'"(total|prompt|completion|input|output)_tokens"\s*:\s*(\d{1,12})')
EVENT = b"data: "


class Meter:
    """Sees the bytes of one answer; wherever in it the engine tells of its use, the last counts."""

    __slots__ = ("_events", "_tail", "_usage")

    def __init__(self) -> None:
        self._tail = b""
        self._usage: bytes | None = None
        self._events = 0

    def see(self, data: bytes) -> None:
        """Take in the next bytes; keeps no more than the engine's word of its use."""
        self._events += data.count(EVENT)
        seen = self._tail + data
        found = list(USAGE.finditer(seen)) if WORD in seen else []
        if found:
            begin = found[-1].end()
            self._usage = seen[begin : begin + USAGE_BYTES]
        elif self._usage is not None and len(self._usage) < USAGE_BYTES:
            self._usage = (self._usage + data)[:USAGE_BYTES]
        self._tail = seen[-TAIL_BYTES:]

    def tokens(self) -> int:
        """Return how many tokens the answer cost: what the engine says, else one an event."""
        return self._events if self._usage is None else used(self._usage)


def used(usage: bytes) -> int:
    """Return the tokens of prompt and answer together; a total wins."""
    counts: dict[bytes, int] = {}
    for name, count in COUNT.findall(usage):
        # Details of a part come behind it and repeat its names.
        counts.setdefault(name, int(count))
    if b"total" in counts:
        return counts[b"total"]
    return sum(counts.values())
