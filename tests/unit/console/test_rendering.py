"""Figures are short, moments are UTC, and everything is escaped."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from gatemesh_console.rendering import age, make_environment, moment, number, percent, pretty

from .conftest import HOSTILE


def test_a_template_escapes_whatever_it_is_called() -> None:
    """Nobody has to remember to."""
    made = make_environment().from_string("{{ text }}|{{ value|pretty }}")
    shown = made.render(text=HOSTILE, value={"a": HOSTILE})
    assert "<" not in shown
    assert "'" not in shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, ""),
        (0.25, "0.2 s"),
        (59.9, "59.9 s"),
        (60, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (86_400, "1 d 0 h"),
        (180_000, "2 d 2 h"),
    ],
)
def test_a_time_has_two_units(seconds: float | None, shown: str) -> None:
    """Nobody counts seconds of days."""
    assert age(seconds) == shown


def test_moments_are_utc() -> None:
    """Whatever zone the driver gave them."""
    at = datetime(2026, 1, 1, 8, tzinfo=timezone(timedelta(hours=8)))
    assert moment(at) == "2026-01-01 00:00:00.000"
    assert moment(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01 00:00:00.000"
    assert moment(None) == ""


@pytest.mark.parametrize(
    ("value", "shown"), [(None, ""), (0.4, "0.4"), (1.0, "1"), (0.12345, "0.123"), (100.0, "100")]
)
def test_a_figure_has_no_needless_digits(value: float | None, shown: str) -> None:
    """Columns stay narrow."""
    assert number(value) == shown


def test_a_share_of_nothing_is_no_number() -> None:
    """A gate that saw nothing has no rate."""
    assert percent(1, 4) == "25.00 %"
    assert percent(0, 0) == "-"


def test_json_keeps_its_chinese() -> None:
    """People read it."""
    assert pretty({"a": "你"}) == '{\n  "a": "你"\n}'
