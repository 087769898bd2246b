"""What the doctor says of a database; the looking is tested on a real one."""

from datetime import UTC, datetime, timedelta

import pytest

from gatemesh_common.schema import SCHEMA_VERSION
from gatemesh_ctl.doctor_database import (
    SILENT_AFTER,
    judge_executor,
    judge_role,
    judge_schema,
    judge_server,
    judge_skew,
)
from gatemesh_ctl.findings import Level

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("version", "level"),
    [("14.9", Level.WARNING), ("15.18 (Debian)", Level.OK), ("18.6", Level.OK)],
)
def test_servers(version: str, level: Level) -> None:
    """Those that are tested are well."""
    assert judge_server(version).level is level


@pytest.mark.parametrize(
    ("version", "level", "word"),
    [
        (None, Level.FAULT, "empty"),
        ("", Level.FAULT, "behind"),
        ("0001", Level.FAULT, "behind"),
        (SCHEMA_VERSION, Level.OK, SCHEMA_VERSION),
        ("9999", Level.WARNING, "ahead"),
    ],
)
def test_schemas(version: str | None, level: Level, word: str) -> None:
    """Behind stops a manager; ahead is only this program being old."""
    found = judge_schema(version)
    assert found.level is level
    assert word in found.what


@pytest.mark.parametrize(
    ("may_read", "level"), [(None, Level.WARNING), (False, Level.UNKNOWN), (True, Level.OK)]
)
def test_roles(may_read: bool | None, level: Level) -> None:  # noqa: FBT001
    """Without the role Grafana cannot be let in."""
    assert judge_role(may_read).level is level


@pytest.mark.parametrize(
    ("skew_s", "unsure_s", "level"),
    [
        (0.9, 0.0, Level.OK),
        (-0.9, 0.0, Level.OK),
        (1.4, 0.5, Level.OK),
        (1.6, 0.5, Level.WARNING),
        (-9.9, 0.0, Level.WARNING),
        (10.0, 0.0, Level.FAULT),
        (-60.0, 0.5, Level.FAULT),
    ],
)
def test_clocks(skew_s: float, unsure_s: float, level: Level) -> None:
    """Only what is certain counts."""
    assert judge_skew("clock", "a and b", skew_s, unsure_s).level is level


def test_an_executor_that_tells_nothing_is_a_fault() -> None:
    """One instance that it no longer tells of is a warning; none at all, too."""
    fresh = {"instance_id": "engine-0", "observed_at": NOW - SILENT_AFTER}
    stale = {"instance_id": "engine-1", "observed_at": NOW - SILENT_AFTER - timedelta(seconds=1)}
    never = {"instance_id": "engine-2", "observed_at": None}
    assert judge_executor([], NOW).level is Level.WARNING
    assert judge_executor([never], NOW).level is Level.FAULT
    assert judge_executor([stale, never], NOW).level is Level.FAULT
    assert judge_executor([fresh], NOW).level is Level.OK
    found = judge_executor([fresh, stale, never], NOW)
    assert found.level is Level.WARNING
    assert found.facts["silent"] == ["engine-1", "engine-2"]
