"""How doubtful the tail of a choice is, token by token, before a gate could prove it. Pure.

A doubt is no judgement: it costs the client a token's delay, and nothing when the next one is fine.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import regex

from gatemesh_agent.gates.context import is_reshaped, number
from gatemesh_agent.gates.entropy import Measure
from gatemesh_agent.gates.l3_distribution import CLAMP, EQUAL_SPREAD, EQUAL_TOP, SAME_RANKS
from gatemesh_agent.gates.markers import SPECIAL
from gatemesh_agent.gates.steps import TokenStep
from gatemesh_agent.gates.window import BLOCK
from gatemesh_agent.reading import Reading

WIDE_NATS = 5.2
"""Source: of 2,883 clean steps of the corpus one in a thousand is beyond 4.9, at temperature 1."""
TWO = 2
SURE_TOP = -1e-3
SURE_NATS = 15.0
"""Between the likeliest token and the next. Source: clean steps of the corpus reach 13.6 in one of
a thousand; an engine that is stuck shows 20."""
GAP_NATS = 0.5
"""Of a greedy choice to the likeliest token: healthy engines show 0."""
EXCESS_NATS = 5.0
"""Of a drawn token's surprisal over its mean: one in a hundred clean draws is beyond."""
SURPLUS_NATS = 6.5
"""The same added up, less a nat for each token: one in a hundred clean tokens is behind such."""
LOOP_SHARE = 0.35
"""Length of a loop under way, of what L1 allows."""
ODD_CHARS = 4 * BLOCK
"""Text behind an odd character within which L1 has judged it, and the next one comes."""
SIGN_CHARS = 2 * BLOCK
MARK_REACH = 48
SIGNS = "!?,;\uff01\uff1f"
SIGN_RUN = 4
BLANK_EVENTS = 3
EMPTY_EVENTS = 4
EMPTY_UNTOLD = 2
"""The same where no figures tell what they are. The role of a chat is such an event, too."""

ODD = regex.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\uf8ff\ufdd0-\ufdef\ufff0-\uffff"
    "\U0001fffe-\U0001ffff\U000f0000-\U0010ffff]"
)
"""Control, private, replacement and invalid characters."""
BARE = regex.compile(r"</?s>|<tool_call>|\[TOOL_CALLS\]")


def doubts_of(body: Mapping[str, Any]) -> "Doubts":
    """Return doubts about an answer to a request."""
    temperature = number(body.get("temperature"))
    known = temperature is not None and not is_reshaped(body)
    return Doubts(
        greedy=known and temperature == 0,
        drawn=known and 0 < (temperature or 0) <= 1,
    )


class Doubts:
    """Follows one choice; is open while its newest tokens may prove bad with the next ones.

    `greedy` and `drawn` say that tokens are taken from the very distribution that is reported: the
    likeliest, or one by chance.
    """

    def __init__(self, *, greedy: bool, drawn: bool) -> None:
        self._greedy = greedy
        self._drawn = drawn
        self._surplus = 0.0
        self._seen = 0
        self._until = 0
        """Token up to which the figures are doubted."""
        self._chars = 0
        self._chars_until = 0
        self._lower = self._top = self._spread = 0.0
        self._token: int | str | None = None
        self._text = ""
        self._tail = ""
        self._blank = self._empty = 0
        self._most_empty = EMPTY_EVENTS
        self._is_marking = False
        self.is_open = False
        """True while what came last is not to be shown yet."""

    def follow(self, step: TokenStep, found: Measure) -> None:
        """Take in one step as L3 measured it."""
        # Taken apart once: each look by name takes as long as a comparison.
        lower, top, gap, excess, _, _, spread, known, _ = found
        text, _, candidates, _, token_id = step
        self._seen += 1
        token = text if token_id is None else token_id
        if (
            lower >= WIDE_NATS
            or (gap > GAP_NATS and self._greedy)
            or (self._drawn and self._is_surprising(excess))
            or (token == self._token and bool(text.strip()))
            or (top >= SURE_TOP and gap <= 0.0 and is_sure(top, known, candidates))
            or self._stands_still(lower, top, spread, known)
        ):
            self._until = self._seen + 1
        self._lower, self._top, self._spread, self._token = lower, top, spread, token

    def _stands_still(self, lower: float, top: float, spread: float, known: int) -> bool:
        """Return True for the figures of before, or for figures that are all alike."""
        if lower == self._lower and top == self._top and spread == self._spread:
            # Of which enough are real to say so.
            return known >= SAME_RANKS and top - spread > CLAMP
        return spread <= EQUAL_SPREAD and top <= EQUAL_TOP

    def _is_surprising(self, excess: float) -> bool:
        surplus = self._surplus + excess - 1.0
        self._surplus = surplus if surplus > 0.0 else 0.0
        return excess > EXCESS_NATS or surplus > SURPLUS_NATS

    def take(self, reading: Reading, suspicion: float) -> None:
        """Take in one event after its steps; `suspicion` is how far L1 is towards a loop."""
        text, steps, other_output, calls = reading
        if not steps:
            self._seen += 1
        if text:
            self._empty = 0
            self._take_text(text, told=bool(steps))
        elif other_output or calls:
            self._empty = self._blank = 0
        else:
            self._empty += 1
            self._most_empty = EMPTY_EVENTS if steps else EMPTY_UNTOLD
        self.is_open = (
            self._seen < self._until
            or self._chars < self._chars_until
            or suspicion >= LOOP_SHARE
            or self._blank >= BLANK_EVENTS
            or self._empty >= self._most_empty
            or self._is_marking
        )

    def _take_text(self, text: str, *, told: bool) -> None:
        self._chars += len(text)
        tail = self._tail = (self._tail + text)[-MARK_REACH:]
        if text.isspace():
            self._blank += 1
        else:
            self._blank = 0
            if not told and text == self._text:
                self._until = self._seen + 1
        self._text = text
        may_hold = "<" in tail or "[" in tail
        self._is_marking = may_hold and may_become_mark(tail)
        if ODD.search(text) or (may_hold and holds_mark(tail, len(text))):
            self._chars_until = self._chars + ODD_CHARS
        elif tail[-1] in SIGNS and ends_in_signs(tail):
            self._chars_until = max(self._chars_until, self._chars + SIGN_CHARS)


def is_sure(top: float, known: int, candidates: Sequence[float | None]) -> bool:
    """Return True for a token that leaves all others further behind than healthy engines do."""
    if known < TWO:
        return False
    second = candidates[1]
    return second is not None and top - second >= SURE_NATS


def ends_in_signs(tail: str) -> bool:
    """Return True for a text that ends in one sign of a sentence, over and over."""
    return tail.endswith(tail[-1] * SIGN_RUN)


def holds_mark(tail: str, fresh: int) -> bool:
    """Return True where a mark of the chat template ends within the newest characters."""
    first = len(tail) - fresh
    return any(hit.end() > first for form in (SPECIAL, BARE) for hit in form.finditer(tail))


def may_become_mark(tail: str) -> bool:
    """Return True where the end of a text may be the beginning of a mark of the chat template."""
    at = max(tail.rfind("<"), tail.rfind("["))
    if at < 0:
        return False
    end = tail[at:]
    return any(form.fullmatch(end, partial=True) is not None for form in (SPECIAL, BARE))
