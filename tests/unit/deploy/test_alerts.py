"""Alerts: what they read is shown, each is played both ways, and each is explained."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatemesh_agent.settings import AgentSettings
from gatemesh_console.settings import ConsoleSettings
from gatemesh_executor.settings import ExecutorSettings
from gatemesh_health_manager.settings import HealthManagerSettings
from gatemesh_shadow.settings import ShadowSettings

from .expressions import faults
from .promtool import needs_promtool, promtool

REPOSITORY = Path(__file__).parents[3]
FOLDER = REPOSITORY / "deploy/prometheus"
PAGE = "docs/observability.md"


def read(name: str) -> Any:
    """Return a file of the folder."""
    return yaml.safe_load((FOLDER / name).read_text())


ALERTS = {rule["alert"]: rule for group in read("alerts.yml")["groups"] for rule in group["rules"]}
JOBS = {one["job_name"]: one for one in read("prometheus.yml")["scrape_configs"]}


def anchors(page: str) -> set[str]:
    """Return the links that lead to a page's headings."""
    titles = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_reads_what_is_shown(name: str) -> None:
    """One with a wrong name would never fire."""
    assert faults(ALERTS[name]["expr"]) == []


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_is_explained(name: str) -> None:
    """By a section of its own that says what to look at and what to do."""
    link = ALERTS[name]["annotations"]["runbook_url"]
    assert link == f"{PAGE}#{name.lower()}"
    assert name.lower() in anchors((REPOSITORY / PAGE).read_text())
    assert ALERTS[name]["labels"]["severity"] in ("critical", "warning")
    assert ALERTS[name]["annotations"]["summary"]


def test_every_alert_is_played_both_ways() -> None:
    """Once as it fires, and once near its limit as it does not."""
    played = [case for test in read("alerts_test.yml")["tests"] for case in test["alert_rule_test"]]
    fires = {case["alertname"] for case in played if case["exp_alerts"]}
    keeps_quiet = {case["alertname"] for case in played if not case["exp_alerts"]}
    assert fires == keeps_quiet == set(ALERTS)


@pytest.mark.parametrize(
    ("job", "settings"),
    [
        ("agent", AgentSettings),
        ("health_manager", HealthManagerSettings),
        ("executor", ExecutorSettings),
        ("shadow", ShadowSettings),
        ("console", ConsoleSettings),
    ],
)
def test_services_are_scraped_where_they_listen(job: str, settings: Any) -> None:
    """By the port that they take without being told one, under the name of compose.yaml."""
    port = settings.model_fields["admin_port"].default
    [targets] = JOBS[job]["static_configs"]
    assert targets["targets"] == [f"{job}:{port}"]
    composed = yaml.safe_load((REPOSITORY / "compose.yaml").read_text())["services"]
    assert job in composed


def test_a_job_is_named_once() -> None:
    """Prometheus does not start with two of one name."""
    names = [one["job_name"] for one in read("prometheus.yml")["scrape_configs"]]
    assert sorted(names) == sorted(JOBS)


@needs_promtool
def test_promtool_reads_the_configuration() -> None:
    """And the rules that it names."""
    assert "SUCCESS" in promtool("check", "config", str(FOLDER / "prometheus.yml"))


@needs_promtool
def test_promtool_plays_the_alerts() -> None:
    """Each with made-up series over the minutes that it needs."""
    assert "SUCCESS" in promtool("test", "rules", str(FOLDER / "alerts_test.yml"))
