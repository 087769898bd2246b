"""Which days of history a table should have: made ahead, kept for a while, then dropped whole."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

DAYS_AHEAD = 7
"""Days made before they come: for so long nobody need be there to make more."""
EVIDENCE = timedelta(days=1)
"""Before and after an incident's opening: no condition looks further back than a day."""

BOUNDS = re.compile(r"FOR VALUES FROM \((.+?)\) TO \((.+?)\)")
OLDEST = datetime.min.replace(tzinfo=UTC)


class UnknownBoundError(ValueError):
    """The bound of a partition is none that was made here."""


@dataclass(frozen=True)
class Span:
    """A stretch of time without its end."""

    begin: datetime
    end: datetime

    def meets(self, other: "Span") -> bool:
        """True when both have a moment in common."""
        return self.begin < other.end and other.begin < self.end


@dataclass(frozen=True)
class Part:
    """One partition and the time whose rows it holds."""

    name: str
    span: Span


def span_of(bound: str) -> Span | None:
    """Return the time of a partition's bound as Postgres words it in UTC; None for all the rest.

    Raises:
        UnknownBoundError: it is no bound of moments.
    """
    if bound == "DEFAULT":
        return None
    found = BOUNDS.fullmatch(bound)
    if found is None:
        raise UnknownBoundError(f"not a bound of moments: {bound}")
    begin, end = found.groups()
    return Span(OLDEST if begin == "MINVALUE" else moment_of(begin), moment_of(end))


def moment_of(words: str) -> datetime:
    """Return the moment that a bound names."""
    try:
        return datetime.fromisoformat(words.strip("'"))
    except ValueError:
        raise UnknownBoundError(f"not a moment: {words}") from None


def day_of(moment: datetime) -> Span:
    """Return the day, in UTC, that holds a moment."""
    begin = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return Span(begin, begin + timedelta(days=1))


def wanted(table: str, parts: Collection[Part], now: datetime) -> list[Part]:
    """Return the days that a table lacks, from today to those ahead."""
    days = [day_of(now + timedelta(days=ahead)) for ahead in range(DAYS_AHEAD + 1)]
    return [
        Part(f"{table}_{day.begin:%Y%m%d}", day)
        for day in days
        if not any(day.meets(part.span) for part in parts)
    ]


def expired(parts: Iterable[Part], before: datetime, needed: Collection[Span] = ()) -> list[Part]:
    """Return the parts that ended before a moment and hold nothing that is still needed."""
    return [
        part
        for part in parts
        if part.span.end <= before and not any(part.span.meets(span) for span in needed)
    ]


def evidence_of(opened_at: datetime) -> Span:
    """Return the time in which the evidence of an incident lies."""
    return Span(opened_at - EVIDENCE, opened_at + EVIDENCE)
