"""One stack for the whole fault suite, and the table of its results at the end."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.report import Line, table, write_page
from tests.faults.site import Site, running_site
from tests.history import assert_replay_agrees

from gatemesh_mesh.suite import FAULTS_PAGE_VARIABLE, FAULTS_VARIABLE

NAME, RULE, BACK, STEPS = "scenario", "rule", "back_s", "steps"


@pytest.fixture(scope="package")
def site() -> Iterator[Site]:
    """Start the stack once; its whole history must replay."""
    with running_site() as site:
        yield site
        assert_replay_agrees(site.fleet.plan.addresses.database_url)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long scenarios to `./mesh test --faults`."""
    if os.environ.get(FAULTS_VARIABLE):
        return
    left_out = [item for item in items if item.get_closest_marker("long_fault")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table, and write it into the page that is named."""
    told = told_by(terminalreporter)
    lines = [
        Line(facts[NAME], facts[RULE], report.passed, report.duration, facts.get(BACK))
        for report, facts in told
        if NAME in facts
    ]
    if not lines:
        return
    steps = [f"{facts[STEPS]:,} steps of the state machine" for _, facts in told if STEPS in facts]
    text = "\n\n".join([table(lines), *steps])
    terminalreporter.section("faults")
    terminalreporter.line(text)
    if page := os.environ.get(FAULTS_PAGE_VARIABLE):
        write_page(Path(page), text)


def told_by(
    terminalreporter: pytest.TerminalReporter,
) -> list[tuple[pytest.TestReport, dict[str, Any]]]:
    """Return the reports of tests that ended, in order, each with what the test tells of itself."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call"
    ]
    return [
        (report, dict(report.user_properties))
        for report in sorted(reports, key=lambda it: it.start)
    ]
