"""What a watch tells, and when."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from gatemesh_ctl.errors import UnreachableError
from gatemesh_ctl.store import Row
from gatemesh_ctl.watching import FIRST_TOLD, MOST_EVENTS, SPAN, Watcher, event_line

START = datetime(2026, 5, 1, 12, tzinfo=UTC)


def event(number: int, instance_id: str = "engine-0") -> Row:
    """Return an event."""
    return {
        "at": START + timedelta(seconds=number),
        "instance_id": instance_id,
        "incarnation": 1,
        "incident_id": None,
        "kind": "state",
        "what": f"event {number}",
        "detail": "why",
    }


class Views:
    """Views whose events are set by the test, on a clock of its own."""

    def __init__(self) -> None:
        self.events: list[Row] = []
        self.time_s = 0.0
        self.asked: list[timedelta] = []
        self.away = False

    def read(self, query: str, values: Mapping[str, object] | None = None) -> list[Row]:
        """Return the events, newest first as the query has them."""
        if self.away:
            raise UnreachableError("away", "wait")
        span = (values or {})["span"]
        assert isinstance(span, timedelta)
        self.asked.append(span)
        return self.events[::-1]

    def instances(self) -> list[Row]:
        """Return one."""
        return [
            {
                "instance_id": "engine-0",
                "pool": "chat",
                "state": "suspect",
                "in_rotation": True,
                "paused": False,
                "incident_id": None,
            }
        ]

    def pools(self) -> list[Row]:
        """Return one."""
        return [{"pool": "chat", "braked": False, "brake_reason": "", "held_incidents": 0}]

    def traffic(self) -> list[Row]:
        """Return none."""
        return []

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.time_s += seconds


def watcher(views: Views, *, whole: bool = True, instance: str | None = None) -> Watcher:
    """Return a watcher on the views' clock."""
    return Watcher(
        views,
        lambda row: instance in (None, row["instance_id"]),
        whole=whole,
        now=lambda: views.time_s,
        sleep=views.sleep,
    )


def told(rows: object) -> list[str]:
    """Return what events say."""
    assert isinstance(rows, list)
    return [row["what"] for row in rows]


def test_each_event_is_told_once() -> None:
    """The first look tells the newest of before."""
    views = Views()
    views.events = [event(number) for number in range(FIRST_TOLD + 5)]
    looks = watcher(views).looks()
    assert told(next(looks).events) == [f"event {it}" for it in range(5, FIRST_TOLD + 5)]
    assert next(looks).events == []
    views.events = [*views.events[1:], event(50)]
    assert told(next(looks).events) == ["event 50"]


def test_an_event_that_is_stored_late_is_told() -> None:
    """Its moment is older than others that were told."""
    views = Views()
    views.events = [event(9)]
    looks = watcher(views).looks()
    next(looks)
    views.events = [event(3), event(9)]
    assert told(next(looks).events) == ["event 3"]


def test_a_flood_that_was_not_read_whole_is_told() -> None:
    """Nobody takes a part for all; what was seen before is no loss."""
    views = Views()
    looks = watcher(views, whole=False).looks()
    assert not next(looks).is_cut
    views.events = [event(number) for number in range(MOST_EVENTS)]
    assert next(looks).is_cut
    views.events = [*views.events[1:], event(MOST_EVENTS)]
    found = next(looks)
    assert (told(found.events), found.is_cut) == ([f"event {MOST_EVENTS}"], False)


def test_one_instance_can_be_watched() -> None:
    """What others do is not told, now or later."""
    views = Views()
    views.events = [event(1), event(2, "engine-1")]
    assert told(next(watcher(views, instance="engine-1").looks()).events) == ["event 2"]


def test_it_ends_when_told() -> None:
    """After so many seconds."""
    assert len(list(watcher(Views(), whole=False).looks(3))) == 4


def test_a_database_that_is_away_later_is_waited_for() -> None:
    """What happened meanwhile is asked for afterwards; away at the start is an error."""
    views = Views()
    looks = watcher(views).looks()
    next(looks)
    views.away = True
    missed = [next(looks).fault for _ in range(3)]
    assert all(missed)
    views.away = False
    views.events = [event(1)]
    assert told(next(looks).events) == ["event 1"]
    assert views.asked == [SPAN, SPAN + timedelta(seconds=4)]
    views.away = True
    with pytest.raises(UnreachableError):
        next(watcher(views).looks())


def test_a_whole_look_has_the_pools_and_who_is_not_well() -> None:
    """A look for lines does not ask for them."""
    look = next(watcher(Views()).looks())
    assert [row["pool"] for row in look.parts["pools"]] == ["chat"]
    assert [row["instance_id"] for row in look.parts["unwell"]] == ["engine-0"]
    assert next(watcher(Views(), whole=False).looks()).parts == {}


def test_an_event_is_one_line() -> None:
    """Moment, instance, kind, words."""
    assert event_line(event(1)).endswith("engine-0  state     event 1  why")
    assert event_line({**event(1), "detail": None}).endswith("event 1")
    assert event_line({**event(1), "detail": "a\nb\x1b[2J"}).endswith("event 1  a b\ufffd[2J")
