"""What one target is still to be told: grouped by pool, one line per subject, at a bounded rate.

Nothing here reads a clock: `now_s` is any clock that only goes forward, in seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gatemesh_common.rates import Bucket
from gatemesh_notifier.facts import WEIGHT, Fact, Level

MOST_REMEMBERED = 10_000
"""Subjects whose last word is remembered; the oldest is forgotten first."""


@dataclass(frozen=True)
class Pace:
    """How long facts are gathered, and how many messages a target gets."""

    gather_s: float
    quiet_gather_s: float
    per_min: float
    burst: int


@dataclass(frozen=True)
class Line:
    """The last fact about a subject, and how often it came."""

    fact: Fact
    count: int
    message_ids: tuple[str, ...]
    since_s: float = 0.0
    """When the first of its events came."""


@dataclass(frozen=True)
class Notification:
    """One message to people: lines about one pool, the weightiest first."""

    pool: str
    lines: tuple[Line, ...]

    @property
    def level(self) -> Level:
        """The weight of its weightiest line."""
        return max((line.fact.level for line in self.lines), key=WEIGHT.__getitem__)

    @property
    def since_s(self) -> float:
        """When the first of its events came."""
        return min(line.since_s for line in self.lines)

    @property
    def message_ids(self) -> tuple[str, ...]:
        """Every event that it tells of."""
        return tuple(one for line in self.lines for one in line.message_ids)


class Mailbox:
    """Gathers facts, and gives them out as one notification per pool when its time has come."""

    def __init__(self, pace: Pace, told: Mapping[str, str]) -> None:
        self._pace = pace
        self._bucket = Bucket.per_min(pace.per_min, pace.burst)
        self._waiting: dict[str, dict[str, Line]] = {}
        self._due_s: dict[str, float] = {}
        self._told = dict(told)
        """The last word told of each subject that is not over."""
        self._accused: dict[str, str] = {}
        """Instances with an open incident that was put in here, by its subject."""
        self._alerted: dict[str, str] = {}
        """Alerts that were told before; more of them are no hurry."""

    def put(self, fact: Fact, now_s: float) -> bool:
        """Take in a fact; False for one that says nothing new to this target."""
        lines = self._waiting.get(fact.pool, {})
        is_known = self._is_known(fact, lines)
        self._note_accused(fact)
        if is_known:
            return False
        known = lines.get(fact.subject)
        ids = (*(known.message_ids if known else ()), fact.message_id)
        repeated = known is not None and known.fact.word == fact.word
        count = known.count + 1 if known and repeated else 1
        line = Line(fact, count, ids, known.since_s if known else now_s)
        self._waiting.setdefault(fact.pool, lines)[fact.subject] = line
        again = fact.subject in self._alerted
        slowly = again or fact.level is Level.QUIET
        wait_s = self._pace.quiet_gather_s if slowly else self._pace.gather_s
        self._due_s[fact.pool] = min(self._due_s.get(fact.pool, now_s + wait_s), now_s + wait_s)
        return True

    def _is_known(self, fact: Fact, lines: Mapping[str, Line]) -> bool:
        if fact.subject in lines:
            return False
        if fact.is_alert:
            # An incident of the instance is told already: the alert only goes with more news.
            return not lines and fact.instance in self._accused.values()
        if fact.level is Level.QUIET:
            return fact.subject not in self._told
        return self._told.get(fact.subject) == fact.word

    def _note_accused(self, fact: Fact) -> None:
        if fact.level is Level.QUIET:
            # Also what it became meanwhile: an incident that ends in quarantine is over by release.
            names = [name for name, one in self._accused.items() if one == fact.instance]
            for name in names:
                del self._accused[name]
        elif not fact.is_alert and fact.instance:
            self._accused[fact.subject] = fact.instance
            self._forget_oldest(self._accused)

    def next_s(self, now_s: float) -> float | None:
        """Return when there is something to give out; None while nothing waits."""
        if not self._due_s:
            return None
        return max(min(self._due_s.values()), now_s + self._bucket.wait_s(now_s))

    def take(self, now_s: float) -> Notification | None:
        """Give out what is due; facts that come while the rate forbids it are gathered on."""
        at_s = self.next_s(now_s)
        if at_s is None or at_s > now_s:
            return None
        pool = min(self._due_s, key=self._due_s.__getitem__)
        del self._due_s[pool]
        lines = self._waiting.pop(pool).values()
        self._bucket.use()
        for line in lines:
            self._remember(line.fact)
        return Notification(pool, tuple(sorted(lines, key=place_of)))

    def fail(self, notification: Notification) -> None:
        """Forget that something was told: nobody got it."""
        for line in notification.lines:
            self._accused.pop(line.fact.subject, None)
            if self._told.get(line.fact.subject) == line.fact.word:
                del self._told[line.fact.subject]

    def _remember(self, fact: Fact) -> None:
        self._told.pop(fact.subject, None)
        if fact.level is not Level.QUIET:
            known = self._alerted if fact.is_alert else self._told
            known[fact.subject] = fact.word
            self._forget_oldest(known)

    @staticmethod
    def _forget_oldest(known: dict[str, str]) -> None:
        if len(known) > MOST_REMEMBERED:
            del known[next(iter(known))]

    @property
    def waiting(self) -> int:
        """How many subjects wait."""
        return sum(len(lines) for lines in self._waiting.values())


def place_of(line: Line) -> tuple[int, bool]:
    """Return what lines are sorted by: the weightiest first, alerts behind what they led to."""
    return -WEIGHT[line.fact.level], line.fact.is_alert
