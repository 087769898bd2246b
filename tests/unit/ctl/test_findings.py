"""Findings and their grades."""

import pytest

from gatemesh_ctl.errors import CtlError
from gatemesh_ctl.findings import (
    Finding,
    Level,
    fault,
    fault_of,
    gravest,
    unknown,
    warning,
    well,
)


@pytest.mark.parametrize(
    ("findings", "level"),
    [
        ([], Level.OK),
        ([well("a", "b")], Level.OK),
        ([well("a", "b"), unknown("a", "b", "c")], Level.UNKNOWN),
        ([warning("a", "b", "c"), unknown("a", "b", "c")], Level.WARNING),
        ([warning("a", "b", "c"), fault("a", "b", "c"), well("a", "b")], Level.FAULT),
    ],
)
def test_the_gravest_counts(findings: list[Finding], level: Level) -> None:
    """Whatever their order."""
    assert gravest(findings) is level


def test_a_row_has_the_cure_and_the_numbers() -> None:
    """For programs."""
    row = warning("queues", "many", "look", messages=3).as_row()
    assert row == {
        "check": "queues",
        "level": "warning",
        "what": "many",
        "cure": "look",
        "facts": {"messages": 3},
    }
    assert "facts" not in well("a", "b").as_row()


def test_an_error_is_a_fault_with_its_way_out() -> None:
    """Errors of ours always have one."""
    found = fault_of("broker", CtlError("wrong", "way out"))
    assert (found.level, found.what, found.cure) == (Level.FAULT, "wrong", "way out")
