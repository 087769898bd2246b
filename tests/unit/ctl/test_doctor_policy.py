"""What the doctor says of the rules."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gatemesh_ctl.doctor_policy import Check, judge_file, judge_in_force
from gatemesh_ctl.findings import Level

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
FILE = Path("policy.toml")


def test_rules_in_force_are_named() -> None:
    """None at all means that no manager ever ran."""
    row = {"policy_version": "abc", "at": NOW - timedelta(seconds=3)}
    found = judge_in_force(row, NOW)
    assert found.level is Level.OK
    assert "abc" in found.what
    assert "3 s ago" in found.what
    assert judge_in_force(None, NOW).level is Level.FAULT


@pytest.mark.parametrize(
    ("file", "in_force", "check", "level"),
    [
        (None, "abc", lambda file: ("abc", ""), Level.UNKNOWN),
        (FILE, "abc", None, Level.UNKNOWN),
        (FILE, "abc", lambda file: ("", "score.half_life_s: too small"), Level.FAULT),
        (FILE, "abc", lambda file: ("xyz", ""), Level.WARNING),
        (FILE, "abc", lambda file: ("abc", ""), Level.OK),
        (FILE, None, lambda file: ("abc", ""), Level.OK),
    ],
)
def test_files(file: Path | None, in_force: str | None, check: Check | None, level: Level) -> None:
    """Absent, unreadable, wrong, not in force, in force."""
    assert judge_file(file, in_force, check).level is level
