"""The end of a growing text, handed to the rules in blocks of fixed size."""

import re
from collections.abc import Iterable, Iterator

BLOCK = 16
"""Characters per step. Steps lie at fixed offsets, so how the text was cut cannot matter."""
CHECKPOINT = 128
"""Characters between two runs of the rules that look back over a whole passage."""
KEEP = 4096
"""Characters kept; the longest loop period and paragraph that can be seen."""
SLACK = 2048
FENCE = "```"
LOUD = re.compile(r"[^\t\n !\"$-;=>?A-Z\]-~]")
"""Signs that marks of an engine begin with, backslashes, and whatever is not ASCII or not shown."""


class TextWindow:
    """The last characters of one answer and where they stand in it."""

    __slots__ = ("_waiting", "base", "block", "end", "fences", "fresh", "quiet", "tail")

    def __init__(self) -> None:
        self.tail = ""
        self.base = 0
        """Offset of `tail[0]` in the whole answer."""
        self.end = 0
        """Characters that the rules have seen."""
        self.fresh = 0
        """Offset at which the current block begins."""
        self.fences = 0
        """How often a code fence was opened or closed."""
        self.block = ""
        """The text of the current block."""
        self.quiet = 0
        """Characters of the latest blocks in a row without a loud sign."""
        self._waiting = ""

    @property
    def in_fence(self) -> bool:
        """True inside a block of code."""
        return self.fences % 2 == 1

    def blocks(self, delta: str) -> Iterable[None]:
        """Take new text and step through every block that it completes."""
        self._waiting += delta
        return self._complete() if len(self._waiting) >= BLOCK else ()

    def _complete(self) -> Iterator[None]:
        waiting = self._waiting
        at = 0
        while len(waiting) - at >= BLOCK:
            self._take(waiting[at : at + BLOCK])
            at += BLOCK
            yield
        self._waiting = waiting[at:]

    def rest(self) -> None:
        """Take what is left when the answer has ended; the block may be short or empty."""
        waiting, self._waiting = self._waiting, ""
        self._take(waiting)

    @property
    def at_checkpoint(self) -> bool:
        """True when a whole passage is to be looked at."""
        return self.end % CHECKPOINT == 0

    def _take(self, block: str) -> None:
        if len(self.tail) > KEEP + SLACK:
            self.base += len(self.tail) - KEEP
            self.tail = self.tail[-KEEP:]
        self.block = block
        self.fresh = self.end
        # Held by nothing else, the text grows in place; 4,000 characters need no copy per block.
        tail, self.tail = self.tail, ""
        tail += block
        self.tail = tail
        self.end += len(block)
        self.quiet = self.quiet + len(block) if LOUD.search(block) is None else 0
        if "`" in block:
            self.fences += self.since(self.fresh - len(FENCE) + 1).count(FENCE)

    def since(self, offset: int) -> str:
        """Return the text from an offset on, as far as it is still there."""
        return self.tail[max(offset - self.base, 0) :]

    def last(self, count: int) -> str:
        """Return at most the last `count` characters."""
        return self.tail[-count:]
