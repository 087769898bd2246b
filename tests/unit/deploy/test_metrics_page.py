"""The page of metrics is what services show, and their names are good ones."""

import ast
from pathlib import Path

import pytest
from deploy.prometheus.metrics_page import MODULES, PAGE, Known, all_metrics, known_of, page
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.registry import REGISTRY

from .promtool import needs_promtool, promtool

REPOSITORY = Path(__file__).parents[3]
KINDS = {"Counter", "Gauge", "Histogram", "Summary", "Info", "Enum"}
BOUNDED = {
    *("action", "attribution", "balancer", "cause", "check_level", "condition", "error"),
    *("exchange", "fate", "found", "gate", "how", "known", "measure", "model", "need", "outcome"),
    *(
        "key",
        "pool",
        "purpose",
        "queue",
        "reason",
        "rerouted",
        "route",
        "stage",
        "standing",
        "state",
    ),
    *("status", "step", "trigger", "type", "version", "why", "kind", "target", "level"),
}
"""Labels with values from a closed list or from the configuration."""
BY_FLEET = {("gatemesh_agent_plugin_silent_total", "instance_id")}
OWN = [one for service, known in all_metrics().items() if service != "engine" for one in known]


def defined_names(source: Path) -> set[str]:
    """Return the first arguments of what a file makes of prometheus_client."""
    calls = (node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Call))
    return {
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Name)
        and call.func.id in KINDS
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
        and call.args[0].value.startswith("gatemesh_")
    }


def test_the_page_is_what_the_code_says() -> None:
    """Else: python -m deploy.prometheus.metrics_page."""
    assert PAGE.read_text() == page()


def test_no_metric_is_left_out() -> None:
    """Wherever in the sources it is made."""
    sources = [path for top in ("libs", "services") for path in (REPOSITORY / top).rglob("*.py")]
    defined = {name for source in sources for name in defined_names(source)}
    assert defined == {one.name for one in OWN}


@pytest.mark.parametrize("one", OWN, ids=lambda one: one.name)
def test_names_say_whose_they_are_and_in_which_unit(one: Known) -> None:
    """A counter ends with _total, a time with _seconds."""
    service = next(name for name, known in all_metrics().items() if one in known)
    shared = service in ("every service", "health_manager")
    assert one.name.startswith("gatemesh_" if shared else f"gatemesh_{service}_")
    assert (one.kind == "counter") == one.name.endswith("_total")
    assert one.kind != "histogram" or one.name.endswith("_seconds")
    assert one.help.endswith(".")


def test_labels_are_bounded() -> None:
    """No request, incident or text makes a series of its own."""
    unbounded = {(one.name, label) for one in OWN for label in one.labels if label not in BOUNDED}
    assert unbounded == BY_FLEET


def test_a_name_means_one_thing() -> None:
    """Services may be scraped into one place."""
    names = [one.name for one in OWN]
    assert len(names) == len(set(names))
    assert set(MODULES) <= set(all_metrics())


def test_a_counter_is_named_as_prometheus_sees_it() -> None:
    """The library takes its ending off."""
    registry = CollectorRegistry()
    known = known_of(Counter("things_total", "Things.", ["kind"], registry=registry))
    assert (known.name, known.labels, known.series) == ("things_total", ("kind",), (known.name,))


@needs_promtool
def test_promtool_finds_nothing_wrong_with_names() -> None:
    """Its rules are those of the Prometheus project."""
    assert promtool("check", "metrics", given=generate_latest(REGISTRY)).strip() == ""
