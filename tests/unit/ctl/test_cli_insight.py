"""Printing of watches, explanations and findings."""

import json
from datetime import UTC, datetime

import pytest
import typer

from gatemesh_ctl import cli_insight
from gatemesh_ctl.errors import UnreachableError
from gatemesh_ctl.findings import Finding, fault, unknown, warning, well
from gatemesh_ctl.watching import Look

AWAY = Look((), fault=UnreachableError("the database is away", "wait"))
EVENT = Look(
    [
        {
            "at": datetime(2026, 5, 1, tzinfo=UTC),
            "instance_id": "engine-0",
            "kind": "state",
            "what": "healthy -> draining",
            "detail": "condemned",
        }
    ]
)


def test_lines_are_events_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """An outage is told once, beside the data, and so is its end."""
    cli_insight.print_looks([EVENT, AWAY, AWAY, EVENT], json_form=False)
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 2
    assert shown.err.splitlines() == [
        "the database is away; trying again",
        "the database answers again",
    ]


def test_json_lines_hold_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    """One object a line."""
    cli_insight.print_looks([EVENT, EVENT], json_form=True)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["at"] for row in rows] == ["2026-05-01T00:00:00+00:00"] * 2


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ([well("a", "fine")], 0),
        ([well("a", "fine"), unknown("b", "not seen", "look")], 0),
        ([warning("a", "odd", "look"), well("b", "fine")], 3),
        ([warning("a", "odd", "look"), fault("b", "broken", "mend")], 1),
    ],
)
@pytest.mark.parametrize("json_form", [False, True])
def test_the_exit_code_tells_how_grave_it_is(
    findings: list[Finding],
    code: int,
    json_form: bool,  # noqa: FBT001
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And every finding is shown, with its cure where there is something to do."""
    with pytest.raises(typer.Exit) as ended:
        cli_insight.show_findings(findings, json_form=json_form)
    assert ended.value.exit_code == code
    text = capsys.readouterr().out
    for one in findings:
        assert one.what in text
        assert one.cure in text
    if json_form:
        assert len(json.loads(text)["findings"]) == len(findings)
