"""Days are made before they come, and dropped once nothing in them is needed."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from gatemesh_health_manager.days import (
    DAYS_AHEAD,
    EVIDENCE,
    OLDEST,
    Part,
    Span,
    UnknownBoundError,
    day_of,
    evidence_of,
    expired,
    span_of,
    wanted,
)
from gatemesh_health_manager.own_conditions import OwnCondition
from gatemesh_health_manager.policy import ConditionA

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def part(days: int) -> Part:
    """Return the partition of a day."""
    span = day_of(NOON + days * DAY)
    return Part(f"verdicts_{span.begin:%Y%m%d}", span)


def test_bounds_are_read_as_the_server_words_them() -> None:
    """A day, the table of before, and the part for all others."""
    day = "FOR VALUES FROM ('2026-05-01 00:00:00+00') TO ('2026-05-02 00:00:00+00')"
    assert span_of(day) == day_of(NOON)
    before = "FOR VALUES FROM (MINVALUE) TO ('2026-05-02 00:00:00+00')"
    assert span_of(before) == Span(OLDEST, day_of(NOON).end)
    assert span_of("DEFAULT") is None


@pytest.mark.parametrize("bound", ["FOR VALUES IN ('a')", "FOR VALUES FROM ('a') TO ('b')", ""])
def test_other_bounds_are_refused(bound: str) -> None:
    """Nothing is dropped by a guess."""
    with pytest.raises(UnknownBoundError):
        span_of(bound)


def test_a_day_is_one_of_utc() -> None:
    """Whatever zone the moment is given in."""
    east = NOON.astimezone(timezone(timedelta(hours=13)))
    assert day_of(east) == day_of(NOON)
    assert day_of(day_of(NOON).end) == day_of(NOON + DAY)


def test_days_are_made_ahead_once() -> None:
    """From today on, and none that a part holds already."""
    first = wanted("verdicts", [], NOON)
    assert first == [part(ahead) for ahead in range(DAYS_AHEAD + 1)]
    assert wanted("verdicts", first, NOON) == []
    assert wanted("verdicts", first, NOON + DAY) == [part(DAYS_AHEAD + 1)]
    before = Part("verdicts_before", Span(OLDEST, day_of(NOON).end))
    assert wanted("verdicts", [before], NOON)[0] == part(1)


def test_a_day_is_dropped_once_all_of_it_is_old() -> None:
    """Not a moment earlier."""
    days = [part(0), part(1)]
    end = day_of(NOON).end
    assert expired(days, end) == [part(0)]
    assert expired(days, end - timedelta(microseconds=1)) == []


def test_the_evidence_of_an_incident_that_is_not_over_stays() -> None:
    """The day of its opening and those around it; the others go."""
    days = [part(n) for n in range(-4, 5)]
    left = set(days) - set(expired(days, NOON + 9 * DAY, [evidence_of(NOON)]))
    assert left == {part(-1), part(0), part(1)}


def test_no_condition_looks_further_back_than_evidence_is_kept() -> None:
    """The longest window that rules may have is inside."""
    just_over = (EVIDENCE + timedelta(seconds=1)).total_seconds()
    with pytest.raises(ValidationError, match="window_s"):
        ConditionA(window_s=just_over)
    with pytest.raises(ValidationError, match="window_s"):
        OwnCondition(name="n", levels=["L1"], more_than=1, window_s=just_over)
