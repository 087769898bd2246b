"""Whose fault a failure is: what is known of the same request at other instances. Pure."""

import hashlib
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import orjson

from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.reporting import Life, Origin
from gatemesh_agent.requests import Asked, Route
from gatemesh_agent.upstream import Order
from gatemesh_common.messages import Attribution, CheckLevel, Outcome, Verdict

MINUTE_S = 60.0
MOST_REQUESTS = 1000
"""Requests whose findings are remembered."""
FEWEST_PRECEDENTS = 5
WHOLE = 2**31
"""Reach of an answer that ended by itself."""
FEWEST_MORE_TOKENS = 8
MORE_TOKENS_SHARE = 0.25
UNBOUNDED_TOKENS = 16
"""Asked of another instance where nothing was seen before the fault, as in a refusal."""

NO_PART_OF_IT = (
    *("stream", "stream_options", "n", "best_of", "user", "seed", "request_id", "metadata"),
    *("max_tokens", "max_completion_tokens", "max_output_tokens", "store", "priority"),
)
"""Fields in which two copies of one request may differ."""
LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
DROPPED = ("stream", "stream_options", "n", "best_of", "min_tokens", "store", *LENGTHS)


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """One client's request: what was asked, who asked, and how it goes to an instance."""

    asked: Asked
    origin: Origin
    order: Order


@dataclass(frozen=True, slots=True)
class Accusation:
    """A failure that is about to be reported, and what a second opinion needs."""

    verdict: Verdict
    request: ClientRequest
    life: Life
    tokens: int
    """Tokens of the answer up to the fault."""
    retried: bool = False
    """True when the client's own request is asked elsewhere now."""
    follows: bool = False
    """True when an instance failed this very request before."""
    continued: bool = False
    """True when the client's answer goes on elsewhere, behind what was good of it."""
    only_if_instance: bool = False
    """True when it is worth reporting only if another instance does better."""

    def charge(self) -> "Charge":
        """Return what the instance is accused of."""
        bad = Finding.HARD if self.verdict.hard else Finding.SOFT
        return Charge(self.life.instance_id, bad, self.verdict.check_level, self.tokens)


class Finding(IntEnum):
    """What one instance made of a request."""

    CLEAN = 0
    SOFT = 1
    HARD = 2


def finding_of(failures: Iterable[Judgement]) -> Finding:
    """Return the worst of what the gates hold against an answer."""
    worst = Finding.CLEAN
    for each in failures:
        if each.outcome is Outcome.FAILED:
            worst = max(worst, Finding.HARD if each.hard else Finding.SOFT)
    return worst


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a request at one instance."""

    finding: Finding
    judged: frozenset[CheckLevel]
    """Gates that looked at it; what was skipped clears nobody."""
    reach: int = WHOLE
    """Tokens up to which the answer was looked at."""


@dataclass(frozen=True, slots=True)
class Witness:
    """An instance that told what it made of a request."""

    instance_id: str
    told: Told
    at_s: float

    def clears(self, bad: Finding, level: CheckLevel, tokens: int) -> bool:
        """Return True when it did better than an answer that was bad up to some token."""
        told = self.told
        return told.finding < bad and told.reach >= tokens and level in told.judged


@dataclass(frozen=True, slots=True)
class Charge:
    """What one instance is accused of."""

    instance_id: str
    bad: Finding
    level: CheckLevel
    tokens: int


class Docket:
    """Remembers for a minute what each instance made of requests that failed somewhere."""

    def __init__(self, memory_s: float = 60.0) -> None:
        self._memory_s = memory_s
        self._heard: OrderedDict[str, dict[str, Witness]] = OrderedDict()

    def hear(self, key: str, witness: Witness) -> None:
        """Take in what an instance made of a request.

        The newest finding of each instance counts; of several bad ones the worst.
        """
        witnesses = self._heard.setdefault(key, {})
        before = witnesses.get(witness.instance_id)
        if before is not None and witness.told.finding is not Finding.CLEAN:
            worst = max(witness.told.finding, before.told.finding)
            witness = replace(witness, told=replace(witness.told, finding=worst))
        witnesses[witness.instance_id] = witness
        self._heard.move_to_end(key)
        while len(self._heard) > MOST_REQUESTS:
            self._heard.popitem(last=False)

    def rule(self, key: str, charge: Charge, now_s: float) -> Attribution:
        """Return whose fault a failure is; unknown while no other instance has told.

        One that did well beats any number that did badly: they are at fault, too.
        """
        others = [
            witness
            for witness in self._heard.get(key, {}).values()
            if witness.instance_id != charge.instance_id and now_s - witness.at_s <= self._memory_s
        ]
        if any(each.clears(charge.bad, charge.level, charge.tokens) for each in others):
            return Attribution.INSTANCE
        if any(each.told.finding >= charge.bad for each in others):
            return Attribution.REQUEST
        return Attribution.UNKNOWN


@dataclass(frozen=True, slots=True)
class Kind:
    """Who is accused, by which gate, how gravely."""

    life: Life
    level: CheckLevel
    bad: Finding


@dataclass(frozen=True, slots=True)
class Precedent:
    """Whose fault one failure was."""

    key: str
    kind: Kind
    ruling: Attribution
    at_s: float

    def is_like(self, kind: Kind) -> bool:
        """Return True for the same gate and gravity, whoever was accused."""
        return (self.kind.level, self.kind.bad) == (kind.level, kind.bad)


class Precedents:
    """Remembers for a minute whose fault other failures of a kind were.

    Where a request cannot be put to anybody in time, as when many different ones fail everywhere,
    the others speak for it. One that was the same life's fault speaks against it.
    """

    def __init__(self, memory_s: float = 60.0) -> None:
        self._memory_s = memory_s
        self._known: OrderedDict[tuple[str, Kind], Precedent] = OrderedDict()

    def add(self, precedent: Precedent) -> None:
        """Take in whose fault one request was."""
        name = (precedent.key, precedent.kind)
        self._known[name] = precedent
        self._known.move_to_end(name)
        while len(self._known) > MOST_REQUESTS:
            self._known.popitem(last=False)

    def rule(self, kind: Kind, now_s: float) -> Attribution:
        """Return whose fault a failure is by what the others were; mostly unknown."""
        like = [
            each
            for each in self._known.values()
            if now_s - each.at_s <= self._memory_s and each.is_like(kind)
        ]
        own = {each.ruling for each in like if each.kind == kind}
        excused = {each.key for each in like if each.ruling is Attribution.REQUEST}
        if len(excused) >= FEWEST_PRECEDENTS and Attribution.INSTANCE not in own:
            return Attribution.REQUEST
        return Attribution.UNKNOWN


def request_key(asked: Asked, path: str) -> str:
    """Return what copies of one request have in common, as a hash."""
    body = {name: value for name, value in (asked.body or {}).items() if name not in NO_PART_OF_IT}
    try:
        written = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    except (TypeError, orjson.JSONEncodeError):
        written = repr(sorted(body.items())).encode("utf-8", "backslashreplace")
    return hashlib.blake2b(path.encode() + written, digest_size=16).hexdigest()


def bounded_length(body: Mapping[str, Any], tokens: int) -> int:
    """Return how many tokens a second opinion asks for: a few more than were seen at fault."""
    more = max(FEWEST_MORE_TOKENS, int(tokens * MORE_TOKENS_SHARE))
    wished = tokens + more if tokens else UNBOUNDED_TOKENS
    own = [value for name in LENGTHS if isinstance(value := body.get(name), int) and value > 0]
    return min([wished, *own])


def bounded_copy(asked: Asked, tokens: int) -> bytes | None:
    """Return the request as it is asked for a second opinion; None when it cannot be written.

    One choice, not streamed, and cut a little after the place where the first answer was bad.
    """
    body = asked.body or {}
    copy = {name: value for name, value in body.items() if name not in DROPPED}
    copy[length_field(asked)] = bounded_length(body, tokens)
    try:
        return orjson.dumps(copy)
    except (TypeError, orjson.JSONEncodeError):
        return None


def length_field(asked: Asked) -> str:
    """Return the field by which a request bounds its answer, as this client wrote it."""
    usual = "max_output_tokens" if asked.route is Route.RESPONSES else "max_tokens"
    return next((name for name in LENGTHS if name in (asked.body or {})), usual)


class TryBudget:
    """How many second tries may run: at once, and in a minute."""

    def __init__(self, at_once: int, per_minute: int) -> None:
        self._at_once = at_once
        self._per_minute = per_minute
        self._running = 0
        self._begun: deque[float] = deque()

    @property
    def is_busy(self) -> bool:
        """True while as many run as may at once: one of them will end."""
        return 0 < self._at_once <= self._running

    def take(self, now_s: float) -> bool:
        """Return True and count a try when there is room for it."""
        while self._begun and now_s - self._begun[0] >= MINUTE_S:
            self._begun.popleft()
        if self._running >= self._at_once or len(self._begun) >= self._per_minute:
            return False
        self._running += 1
        self._begun.append(now_s)
        return True

    def give_back(self) -> None:
        """Count a try as ended."""
        self._running -= 1
