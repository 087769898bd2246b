"""Loops: the same characters over and over, with any period, or rows that differ in numbers."""

import re
from bisect import bisect_right
from collections import deque

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.counts import largest_count, largest_flood
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.sourcecode import PASSAGE, is_source, reads_as_code
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.units import UnitKind, is_dense, is_prose, is_wordy, kind_of
from gatemesh_agent.gates.window import BLOCK, KEEP, SLACK, TextWindow
from gatemesh_common.messages import Reason

NEEDLE = 24
"""Characters at the end that are looked for further back."""
DENSE_WEIGHT = 2.5
"""Letters of dense scripts carry about as much as this many Latin ones."""
LONG_PERIOD_REPEATS = 4.5
LATE_START = 384
"""A loop that begins behind this much varied text is given less room: a small healthy model that
loops does so early (none of 2,100 recorded answers behind 320 characters), and no text among 28,000
passages and 9,000 source files repeats itself three times."""
LATE_PROSE_CHARS = 104.0
LATE_PROSE_REPEATS = 3.2
LATE_DATA_CHARS = 208.0
LATE_DATA_REPEATS = 4.5
LATE_WORD_CHARS = 88.0
FIRST_SIGN_CHARS = 12.0
"""An answer of nothing but one sign."""
FIRST_SHARE = 0.5
"""Of the usual limit, for a run that is the answer from its first character on."""
TABLE_RULE_CHARS = 480.0
PADDING_CHARS = 160.0
LONGEST_ROW = 512
LONGEST_HEADING = 480
LITERAL_CHARS = 320.0
"""One letter over and over between quotation marks of a program: a filler of tests."""
STAMPED_REPEATS = 28
LONG_ROW_REPEATS = 40
LONG_ROW = 40
REQUEST_SLACK = 1.25
"""Engines miscount: up to a quarter more than asked is no loop."""
REQUEST_EXTRA = 4
WISHED_FACTOR = 2.0
"""Where the prompt asks for repetition without a number."""
ENDLESS_FACTOR = 50.0
CODE_FACTOR = 2.0
LISTED_REPEATS = 6
LATE_LISTED_REPEATS = 4
NUMBERED_PROSE_REPEATS = 12
NUMBERED_DATA_REPEATS = 60
NUMBERED_CODE_REPEATS = 240

LIMIT_CHARS = {
    UnitKind.BREAK: 24,
    UnitKind.BLANK: 112,
    UnitKind.RULE: 160,
    UnitKind.SIGN: 28,
    UnitKind.SIGNS: 60,
    UnitKind.PATTERN: 600,
    UnitKind.DIGIT: 120,
    UnitKind.DIGITS: 320,
    UnitKind.LETTER: 64,
    UnitKind.SYLLABLE: 160,
    UnitKind.WORD: 160,
    UnitKind.TEXT: 320,
}
"""Characters of an unbroken run that no healthy answer reaches unasked.

Source: `shared/cases` and the clean part of `shared/corpus`; a small healthy model writes loops of
up to 290 characters in 128 tokens, and people ask for rules, tables and banners up to 120.
"""
DIGITS = regex.compile(r"\d+")
LIST_MARK = regex.compile(r"[\s*#(]*0[.):]\s")
FILLER = regex.compile(r"(\p{L})\1{15,}")
TWO_WORDS = regex.compile(r"\p{L} \p{L}")
QUOTES = frozenset({'"', "'"})
STAMP_SIGNS = "0[](){}:.,-/*#> \t"
FIRST = frozenset(
    {UnitKind.SIGN, UnitKind.SIGNS, UnitKind.DIGIT, UnitKind.DIGITS, UnitKind.LETTER, UnitKind.WORD}
)
FLOODS = FIRST - {UnitKind.DIGIT, UnitKind.DIGITS} | {UnitKind.SYLLABLE}
LEAST_CHARS = min(LIMIT_CHARS.values())
PLAIN_DIGIT = re.compile("[0-9]")


class PeriodTracker:
    """Follows the longest run at the end of a text in which one period repeats."""

    __slots__ = ("period", "start")

    def __init__(self) -> None:
        self.period = 0
        """Length of the repeated unit; 0 while nothing repeats."""
        self.start = 0
        """Offset at which the run began."""

    def advance(self, tail: str, end: int, fresh: int) -> None:
        """Take note of `fresh` new characters; `end` is the offset behind the last one."""
        size = len(tail)
        period = self.period
        if period and period + fresh <= size:
            if tail[size - fresh :] == tail[size - fresh - period : size - period]:
                return
            self.period = 0
        if size <= NEEDLE:
            return
        at = tail.rfind(tail[-NEEDLE:], 0, size - 1)
        if at >= 0:
            self.period = size - NEEDLE - at
            self.start = end - self.period - common_suffix(tail, self.period)

    def repeats(self, end: int) -> float:
        """Return how often the unit stands there; 0 while nothing repeats."""
        return (end - self.start) / self.period if self.period else 0.0


def common_suffix(tail: str, period: int) -> int:
    """Return how many characters at the end equal those one period before."""
    low, high = NEEDLE, len(tail) - period
    while low < high:
        middle = (low + high + 1) // 2
        if tail[-middle:] == tail[-middle - period : -period]:
            low = middle
        else:
            high = middle - 1
    return low


def may_hold_digits(block: str) -> bool:
    """Return True for text with a digit, or in which only the pattern can tell."""
    return PLAIN_DIGIT.search(block) is not None or not block.isascii()


class LoopLimits:
    """How long a loop may be before it is a fault, given what the prompt asks for."""

    __slots__ = ("_allowed", "_context", "_floods", "_wished")

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._allowed: tuple[int, float] | None = None
        self._floods = 0
        self._wished: bool | None = None

    def chars(self, unit: str, *, start: int = 1, in_fence: bool = False) -> float:
        """Return the longest innocent run of a unit that began at an offset, in characters."""
        kind = kind_of(unit)
        if kind is UnitKind.DIGITS and unit.isdigit():
            kind = UnitKind.DIGIT
        if kind is UnitKind.TEXT:
            limit = text_limit(unit, late=start >= LATE_START, in_fence=in_fence)
        else:
            limit = float(LIMIT_CHARS[kind])
            if in_fence and kind is UnitKind.DIGITS:
                limit *= CODE_FACTOR
            elif kind is UnitKind.WORD and start >= LATE_START:
                limit = LATE_WORD_CHARS
        if kind in {UnitKind.BREAK, UnitKind.BLANK}:
            return limit
        if start == 0 and kind in FIRST:
            limit = FIRST_SIGN_CHARS if kind is UnitKind.SIGN else limit * FIRST_SHARE
        if kind is UnitKind.TEXT and is_prose(DIGITS.sub("0", unit)) and not self.wished:
            # A number in the prompt asks for that many things, not for the same sentence.
            return limit
        return self.asked_for(limit, len(unit), is_flood=kind in FLOODS)

    @property
    def wished(self) -> bool:
        """True where the prompt speaks of repeating."""
        if self._wished is None:
            self._wished = self._context.asks(Topic.REPEATING, Topic.PLAYFUL)
        return self._wished

    def asked_for(self, limit: float, period: int, *, is_flood: bool = False) -> float:
        """Raise a limit to what the prompt asks for."""
        if self._allowed is None:
            wished = self._context.asks(Topic.REPEATING)
            prompt = self._context.prompt
            count = largest_count(prompt, repeating=wished)
            self._floods = count if wished else largest_flood(prompt)
            factor = WISHED_FACTOR if wished or self._context.asks(Topic.PLAYFUL) else 1.0
            endless = wished and self._context.asks(Topic.ENDLESS)
            self._allowed = (count, ENDLESS_FACTOR if endless else factor)
        count, factor = self._allowed
        if is_flood:
            count = self._floods
        return max(limit * factor, (count * REQUEST_SLACK + REQUEST_EXTRA) * period)


def text_limit(unit: str, *, late: bool, in_fence: bool) -> float:
    """Return how long a loop of words or data may be before the prompt is asked."""
    weight = DENSE_WEIGHT if is_dense(unit) else 1.0
    if not late:
        limit = LIMIT_CHARS[UnitKind.TEXT] / weight
        return max(limit, LONG_PERIOD_REPEATS * len(unit))
    if in_fence or not is_wordy(unit):
        return max(LATE_DATA_CHARS / weight, LATE_DATA_REPEATS * len(unit))
    return max(LATE_PROSE_CHARS / weight, LATE_PROSE_REPEATS * len(unit))


def is_stamped(unit: str) -> bool:
    """Return True for a row of words behind a number, a time or a bullet."""
    rest = unit.strip().lstrip(STAMP_SIGNS)
    return (
        TWO_WORDS.search(rest) is not None and is_wordy(rest) and len(rest) * 2 >= len(unit.strip())
    )


def is_listed(unit: str) -> bool:
    """Return True for a row whose only number is the one before it, so that none of it is new."""
    head, _, rest = unit.partition("\n")
    return unit.count("0") == 1 and LIST_MARK.match(rest + head) is not None


def rows_limit(unit: str, window: TextWindow, *, late: bool) -> int:
    """Return how many rows may differ in nothing but their numbers."""
    if reads_as_code(window):
        return STAMPED_REPEATS if is_stamped(unit) else NUMBERED_CODE_REPEATS
    if is_prose(unit):
        listed = LATE_LISTED_REPEATS if late else LISTED_REPEATS
        return listed if is_listed(unit) else NUMBERED_PROSE_REPEATS
    if is_stamped(unit):
        return STAMPED_REPEATS
    return LONG_ROW_REPEATS if len(unit) >= LONG_ROW else NUMBERED_DATA_REPEATS


def in_table(window: TextWindow, start: int) -> bool:
    """Return True for a run inside one row of a table."""
    line = window.since(start - NEEDLE).rsplit("\n", 1)[-1]
    return line.lstrip().startswith(("|", "+"))


def in_cells(window: TextWindow, start: int) -> bool:
    """Return True for a run in a line that has the marks of cells before it."""
    line = window.since(start - LONGEST_ROW)[:LONGEST_ROW].rpartition("\n")[2]
    return "|" in line or "<" in line


def heading_chars(window: TextWindow, start: int) -> float:
    """Return how long the line right above is, which a run that is a line itself may underline."""
    above = window.since(start - LONGEST_HEADING)[: min(LONGEST_HEADING, start)]
    lines = above.rsplit("\n", 2)
    return float(len(lines[-2]) + BLOCK) if len(lines) > 1 and not lines[-1] else 0.0


def excused_chars(kind: UnitKind, window: TextWindow, start: int) -> float:
    """Return how long a run may be for where it stands: in a table, a literal or a program."""
    if kind is UnitKind.BLANK:
        return PADDING_CHARS if in_cells(window, start) or reads_as_code(window) else 0.0
    if kind is UnitKind.RULE:
        return TABLE_RULE_CHARS if in_table(window, start) else heading_chars(window, start)
    if kind is UnitKind.LETTER and window.since(start - 1)[:1] in QUOTES:
        return LITERAL_CHARS if is_source(FILLER.sub("", window.last(PASSAGE))) else 0.0
    if kind is UnitKind.DIGITS and reads_as_code(window):
        return LIMIT_CHARS[kind] * CODE_FACTOR
    return 0.0


class Repetition:
    """Judges loops against what the request allows."""

    __slots__ = (
        "_exact",
        "_limits",
        "_marks",
        "_norm",
        "_norm_end",
        "_norm_size",
        "_number_end",
        "_numbered",
        "_waiting",
        "suspicion",
    )

    def __init__(self, context: RequestContext) -> None:
        self._exact = PeriodTracker()
        self._numbered = PeriodTracker()
        self._norm = ""
        self._norm_end = self._norm_size = 0
        self._waiting: deque[str] = deque(maxlen=(KEEP + SLACK) // BLOCK + 2)
        """What is to be added to the shortened text once a number in it makes it of use."""
        self._number_end = -1
        """Offset in the shortened text behind its last number."""
        self._marks: deque[tuple[int, int]] = deque(maxlen=(KEEP + SLACK) // BLOCK)
        self._limits = LoopLimits(context)
        self.suspicion = 0.0
        """Length of the present run as a share of what is allowed; beyond 1 it is a loop."""

    def scan(self, window: TextWindow) -> Finding | None:
        """Look whether the newest block goes on repeating."""
        self._exact.advance(window.tail, window.end, len(window.block))
        return self._loop(window) or self._numbered_loop(window)

    def _loop(self, window: TextWindow) -> Finding | None:
        period, start = self._exact.period, self._exact.start
        length = window.end - start
        self.suspicion = 0.0
        if not period or length < LEAST_CHARS:
            return None
        unit = window.last(period)
        limit = self._limits.chars(unit, start=start, in_fence=window.in_fence)
        if length > limit:
            limit = max(limit, excused_chars(kind_of(unit), window, start))
        self.suspicion = length / limit
        if length <= limit:
            return None
        return Finding(Reason.REPETITION, float(length), limit, start, window.end)

    def _numbered_loop(self, window: TextWindow) -> Finding | None:
        """Look for rows that are equal but for their numbers."""
        self._normalise(window)
        period = self._numbered.period
        if not period or self._numbered.repeats(self._norm_end) <= LATE_LISTED_REPEATS:
            return None
        unit = self._norm[-period:]
        repeats = self._numbered.repeats(self._norm_end)
        if "0" not in unit or sum(map(str.isalpha, unit)) * 3 < len(unit) or period < NEEDLE / 2:
            return None
        start = self._origin(self._numbered.start)
        rows = rows_limit(unit, window, late=start >= LATE_START)
        limit = self._limits.asked_for(float(rows), 1)
        if repeats <= limit:
            return None
        return Finding(Reason.REPETITION, repeats, limit, start, window.end)

    def _normalise(self, window: TextWindow) -> None:
        block = window.block
        short = self._shortened(block) if may_hold_digits(block) else block
        if self._norm_size > KEEP + SLACK:
            self._norm_size = KEEP
        self._norm_size += len(short)
        self._waiting.append(short)
        self._norm_end += len(short)
        self._marks.append((self._norm_end, window.end))
        if self._number_end <= self._norm_end - self._norm_size:
            # Rows without numbers are no numbered rows, whatever repeats in them.
            self._numbered.period = 0
            return
        norm, self._norm = self._norm, ""
        norm += "".join(self._waiting)
        self._norm = norm[-self._norm_size :]
        self._waiting.clear()
        if short:
            self._numbered.advance(self._norm, self._norm_end, len(short))

    def _shortened(self, block: str) -> str:
        """Return a block with a single 0 for each number that does not go on from before."""
        short = DIGITS.sub("0", block)
        if self._number_end == self._norm_end and short[:1] == "0":
            short = short[1:]
        last = short.rfind("0")
        if last >= 0:
            self._number_end = self._norm_end + last + 1
        return short

    def _origin(self, offset: int) -> int:
        """Return about where a place of the shortened text stands in the answer."""
        marks = list(self._marks)
        at = bisect_right(marks, (offset, 0))
        return marks[at - 1][1] if at else 0
