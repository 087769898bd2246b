"""Server-sent events over bytes that arrive split and merged anywhere. Pure."""

import re
from collections.abc import Iterator

# Atomic groups: a lone CRLF must not match as two line ends.
BOUNDARY = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
LONGEST_BOUNDARY = 4
PLAIN_END = b"\n\n"

DONE = b"data: [DONE]\n\n"


class EventSplitter:
    """Cuts a byte stream into events; joined again, events and rest are the stream."""

    def __init__(self) -> None:
        self._rest = b""

    @property
    def rest(self) -> bytes:
        """What has arrived of an event that is not complete."""
        return self._rest

    def feed(self, data: bytes) -> list[bytes]:
        """Return the events that `data` completes, each with the blank line that ends it."""
        unsearched = max(len(self._rest) - LONGEST_BOUNDARY + 1, 0)
        buffer = self._rest + data if self._rest else data
        if (
            buffer.endswith(PLAIN_END)
            and buffer.find(b"\n") == len(buffer) - 2
            and b"\r" not in buffer
        ):
            # One event on one line; a single sign is found ten times as fast as a pair.
            self._rest = b""
            return [buffer]
        # Plain line feeds are the rule, and finding them is far cheaper than the expression.
        ends = plain_ends if b"\r" not in buffer else any_ends
        events: list[bytes] = []
        begin = 0
        for end in ends(buffer, unsearched):
            events.append(buffer[begin:end])
            begin = end
        self._rest = buffer[begin:] if begin else buffer
        return events

    def take_rest(self) -> bytes:
        """Return the incomplete event and forget it."""
        rest, self._rest = self._rest, b""
        return rest


def plain_ends(buffer: bytes, start: int) -> Iterator[int]:
    """Yield where events end in a buffer without carriage returns."""
    # Single signs: a pair takes ten times as long to find.
    found = buffer.find(b"\n", start)
    while found >= 0:
        ends = buffer.startswith(b"\n", found + 1)
        if ends:
            yield found + 2
        found = buffer.find(b"\n", found + 1 + ends)


def any_ends(buffer: bytes, start: int) -> Iterator[int]:
    """Yield where events end, whatever ends their lines."""
    for match in BOUNDARY.finditer(buffer, start):
        if match.end() == len(buffer) and buffer.endswith(b"\r"):
            # The next byte may be the LF of this CR.
            return
        yield match.end()


def json_start(event: bytes) -> int:
    """Return where the JSON object of an event's data begins; -1 when it carries none."""
    start = event.find(b"{")
    return start if start > 0 and event[:start].rstrip(b" ").endswith(b"data:") else -1
