"""How doubtful the tail of a choice is, token by token, before a gate could prove it. Pure.

A doubt is no judgement: it costs the client a token's delay, and nothing when the next one is fine.
"""

from collections.abc import Mapping
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
LOOP_SHARE = 0.5
"""Length of a loop under way, of what L1 allows."""
TEXT_CHARS = 2 * BLOCK
"""Text behind an odd sign within which L1 has judged it."""
MARK_REACH = 48
SIGN_RUN = 4
BLANK_EVENTS = 3
EMPTY_EVENTS = 4

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
        self._figures = (0.0, 0.0, 0.0)
        self._token: int | str | None = None
        self._text = ""
        self._tail = ""
        self._blank = self._empty = 0
        self.is_open = False
        """True while what came last is not to be shown yet."""

    def follow(self, step: TokenStep, found: Measure) -> None:
        """Take in one step as L3 measured it."""
        self._seen += 1
        figures = found.lower, found.top, found.spread
        token = step.text if step.token_id is None else step.token_id
        doubted = (
            found.lower >= WIDE_NATS
            or (figures == self._figures and is_told(found))
            or (found.spread <= EQUAL_SPREAD and found.top <= EQUAL_TOP)
            or (self._greedy and found.gap > GAP_NATS)
            or (self._drawn and self._is_surprising(found.excess))
            or (token == self._token and bool(step.text.strip()))
            or is_sure(step, found)
        )
        self._figures, self._token = figures, token
        if doubted:
            self._until = self._seen + 1

    def _is_surprising(self, excess: float) -> bool:
        surplus = self._surplus + excess - 1.0
        self._surplus = surplus if surplus > 0.0 else 0.0
        return excess > EXCESS_NATS or surplus > SURPLUS_NATS

    def take(self, reading: Reading, suspicion: float) -> None:
        """Take in one event after its steps; `suspicion` is how far L1 is towards a loop."""
        text = reading.text
        self._seen = max(self._seen, 1) if reading.steps else self._seen + 1
        if text:
            self._empty = 0
            self._take_text(text, told=bool(reading.steps))
        elif reading.other_output or reading.calls:
            self._empty = self._blank = 0
        else:
            self._empty += 1
        self.is_open = (
            self._seen < self._until
            or self._chars < self._chars_until
            or suspicion >= LOOP_SHARE
            or self._blank >= BLANK_EVENTS
            or self._empty >= EMPTY_EVENTS
            or bool(self._tail and may_become_mark(self._tail))
        )

    def _take_text(self, text: str, *, told: bool) -> None:
        self._chars += len(text)
        self._tail = (self._tail + text)[-MARK_REACH:]
        is_blank = not text.strip()
        self._blank = self._blank + 1 if is_blank else 0
        if not told and not is_blank and text == self._text:
            self._until = self._seen + 1
        self._text = text
        if ODD.search(text) or holds_mark(self._tail, len(text)) or ends_in_signs(self._tail):
            self._chars_until = self._chars + TEXT_CHARS


def is_told(found: Measure) -> bool:
    """Return True for figures of which enough are real to say that they stand still."""
    return found.known >= SAME_RANKS and found.top - found.spread > CLAMP


def is_sure(step: TokenStep, found: Measure) -> bool:
    """Return True for a token that leaves all others further behind than healthy engines do."""
    if found.top < SURE_TOP or found.gap > 0.0 or found.known < TWO:
        return False
    second = step.top_logprobs[1]
    return second is not None and found.top - second >= SURE_NATS


def ends_in_signs(tail: str) -> bool:
    """Return True for a text that ends in one sign of a sentence, over and over."""
    last = tail[-1]
    return last in "!?,;\uff01\uff1f" and tail.endswith(last * SIGN_RUN)


def holds_mark(tail: str, fresh: int) -> bool:
    """Return True where a mark of the chat template ends within the newest characters."""
    if "<" not in tail and "[" not in tail:
        return False
    first = len(tail) - fresh
    return any(hit.end() > first for form in (SPECIAL, BARE) for hit in form.finditer(tail))


def may_become_mark(tail: str) -> bool:
    """Return True where the end of a text may be the beginning of a mark of the chat template."""
    at = max(tail.rfind("<"), tail.rfind("["))
    if at < 0:
        return False
    end = tail[at:]
    return any(form.fullmatch(end, partial=True) is not None for form in (SPECIAL, BARE))
