"""Characters that no healthy answer holds unless its prompt wants them."""

import re

import regex

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Finding
from gatemesh_agent.gates.sourcecode import in_literal
from gatemesh_agent.gates.topics import Topic
from gatemesh_agent.gates.window import BLOCK, TextWindow
from gatemesh_common.messages import Reason

PRIVATE_LIMIT = 1
"""A lone private-use character is a bullet of a Symbol font, copied from web text."""
PRIVATE_LIMIT_IN_CODE = 7
REPLACEMENT_LIMIT = 0
REPLACEMENT_LIMIT_WIDE = 1
"""Drawing at temperature 1 now and then hits half a character, in runs of up to three bytes."""
STRAY_LIMIT_WIDE = 3
C1_FIRST = "\x80"
INVISIBLE_LIMIT = 12
MARKS_LIMIT = 8
"""The most marks on one letter that any script writes is five, in Tibetan."""
SPREAD_CHARS = 96
SPREAD_SHARE = 0.3
"""Khmer writes a zero-width space every six letters, Persian a joiner every twenty."""
EXCUSED_END_CHARS = 3
"""Bytes of one cut character."""

SUSPECTS = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\u00ad\u180e"
    "\ud800-\uf8ff\ufdd0-\ufdef\ufff0-\uffff\U0001fffe-\U0001ffff\U000e0000-\U0010ffff]"
)
"""One quick look that lets nearly every block pass."""
CONTROL = regex.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]")
PRIVATE = regex.compile("[\ue000-\uf8ff\U000f0000-\U0010fffd]")
REPLACEMENT = regex.compile("\ufffd+")
INVALID = regex.compile(
    "[\ufdd0-\ufdef\ufffe\uffff\\U0001fffe\\U0001ffff]|[\ud800-\udbff](?![\udc00-\udfff])(?=.)"
    "|(?<![\ud800-\udbff])[\udc00-\udfff]",
    regex.DOTALL,
)
INVISIBLE = regex.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u00ad\u180e\U000e0000-\U000e0fff]"
)
INVISIBLE_RUN = regex.compile(f"{INVISIBLE.pattern}{{{INVISIBLE_LIMIT + 1},}}")
MARK = regex.compile(r"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]")
MARK_RUN = regex.compile(f"{MARK.pattern}{{{MARKS_LIMIT + 1},}}")


class Characters:
    """Counts odd characters of one answer."""

    __slots__ = ("_context", "_private", "_replaced", "_stray")

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._private = 0
        self._replaced = 0
        self._stray = 0

    def scan(self, window: TextWindow) -> Finding | None:
        """Look at the newest block."""
        if window.quiet > BLOCK or SUSPECTS.search(window.since(window.fresh - 1)) is None:
            return None
        return (
            self._control(window)
            or self._invalid(window)
            or self._private_use(window)
            or self._replacement(window)
            or self._invisible(window)
        )

    def finish(self, window: TextWindow, *, excused_end: bool) -> Finding | None:
        """Look at the end, where a character cut by the limit is no fault."""
        tail = window.last(EXCUSED_END_CHARS + 1)
        run = len(tail) - len(tail.rstrip("\ufffd"))
        if run and not (excused_end and run <= EXCUSED_END_CHARS):
            return self._replaced_run(window, window.end - run, window.end)
        if "\ud800" <= tail[-1:] <= "\udbff":
            return found(Reason.INVALID_CHARS, 1, 0, window.end - 1, window.end)
        return None

    def _control(self, window: TextWindow) -> Finding | None:
        fresh = window.since(window.fresh)
        hit = CONTROL.search(fresh)
        if (
            hit is None
            or self._is_drawn_by_chance(fresh)
            or self._context.asks(Topic.CONTROL_CHARS)
        ):
            return None
        start = window.fresh + hit.start()
        return found(Reason.CONTROL_CHARS, 1, 0, start, window.end)

    def _is_drawn_by_chance(self, fresh: str) -> bool:
        """Return True for a few stray bytes of a character where odd tokens are to be expected."""
        hits = CONTROL.findall(fresh)
        self._stray += len(hits)
        return self._context.wide and self._stray <= STRAY_LIMIT_WIDE and min(hits) >= C1_FIRST

    def _invalid(self, window: TextWindow) -> Finding | None:
        since = max(window.fresh - 1, window.base)
        hit = INVALID.search(window.since(since))
        if hit is None or self._context.asks(Topic.CONTROL_CHARS):
            return None
        return found(Reason.INVALID_CHARS, 1, 0, since + hit.start(), since + hit.end())

    def _private_use(self, window: TextWindow) -> Finding | None:
        hits = [hit.start() for hit in PRIVATE.finditer(window.since(window.fresh))]
        self._private += len(hits)
        limit = PRIVATE_LIMIT_IN_CODE if window.fences else PRIVATE_LIMIT
        if not hits or self._private <= limit or self._context.asks(Topic.ICONS):
            return None
        start = window.fresh + hits[0]
        return found(Reason.PRIVATE_USE_CHARS, self._private, limit, start, window.end)

    def _replacement(self, window: TextWindow) -> Finding | None:
        # A run that touches the end may yet prove to be the excused end of the answer.
        since = window.fresh - EXCUSED_END_CHARS
        text = window.since(since)
        since = window.end - len(text)
        for run in REPLACEMENT.finditer(text):
            closed = run.end() < len(text) and since + run.end() > window.fresh - 1
            if closed or run.end() - run.start() > EXCUSED_END_CHARS:
                finding = self._replaced_run(window, since + run.start(), since + run.end())
                if finding is not None:
                    return finding
        return None

    def _replaced_run(self, window: TextWindow, start: int, end: int) -> Finding | None:
        self._replaced += 1
        # Tests of decoders name the sign itself, once.
        named = self._replaced == 1 and in_literal(window, start)
        excused = self._context.wide or named
        limit = REPLACEMENT_LIMIT_WIDE if excused else REPLACEMENT_LIMIT
        flood = end - start > EXCUSED_END_CHARS
        if (self._replaced <= limit and not flood) or self._context.asks(Topic.ENCODING):
            return None
        return found(Reason.REPLACEMENT_CHARS, self._replaced, limit, start, min(end, window.end))

    def _invisible(self, window: TextWindow) -> Finding | None:
        text = window.last(SPREAD_CHARS)
        run = INVISIBLE_RUN.search(text) or MARK_RUN.search(text)
        hidden = len(INVISIBLE.findall(text)) + len(MARK.findall(text)) / 2
        spread = len(text) == SPREAD_CHARS and hidden > SPREAD_SHARE * SPREAD_CHARS
        if (run is None and not spread) or self._context.asks(Topic.INVISIBLE):
            return None
        start = window.end - len(text) + (run.start() if run is not None else 0)
        return found(Reason.INVISIBLE_CHARS, hidden, INVISIBLE_LIMIT, start, window.end)


def found(reason: Reason, score: float, threshold: float, start: int, end: int) -> Finding:
    """Name a fault."""
    return Finding(reason, float(score), float(threshold), start, end)
