"""Writes docs/metrics.md from the metrics that services define.

    python -m deploy.prometheus.metrics_page

Needs every service's packages, as the tests do.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from gatemesh_engine_sim.metrics import EngineMetrics

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"

MODULES: Mapping[str, tuple[str, ...]] = {
    "every service": ("gatemesh_common.metrics",),
    "agent": ("gatemesh_agent.metrics",),
    "health_manager": ("gatemesh_health_manager.metrics", "gatemesh_common.outbox"),
    "executor": ("gatemesh_executor.metrics",),
    "shadow": ("gatemesh_shadow.metrics",),
    "notifier": ("gatemesh_notifier.metrics",),
    "console": ("gatemesh_console.metrics",),
}
"""Where the metrics of a service are."""

HEAD = """\
# Metrics

Written by `python -m deploy.prometheus.metrics_page` from the code; a test compares it. How to
scrape, which alerts and dashboards there are: [observability.md](observability.md).

Every service shows them at `/metrics` of its admin port: agent 9101, health_manager 9102, executor
9103, shadow 9104, notifier 9105, console 9106. Label values come from closed lists (gates, reasons,
states, queues, classes of errors) or from what you configure (pools, plugged-in gates, balancers,
targets, names of keys). The one label that grows with the fleet is `instance_id`; no request,
incident or text is one. A histogram has `_bucket`, `_sum` and `_count`; a counter begins at 0 with
each start of the process.
"""


@dataclass(frozen=True)
class Known:
    """A metric as it is shown."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str

    @property
    def series(self) -> tuple[str, ...]:
        """The names that expressions may use."""
        if self.kind == "histogram":
            return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))
        return (self.name,)


def known_of(metric: MetricWrapperBase) -> Known:
    """Return what is known of a metric, by its name on the page of the service."""
    [family] = metric.describe()
    return Known(shown_name(family), family.type, labels_of(metric), family.documentation)


def shown_name(family: Metric) -> str:
    """Return the name that Prometheus sees."""
    return f"{family.name}_total" if family.type == "counter" else family.name


def labels_of(metric: MetricWrapperBase) -> tuple[str, ...]:
    """Return the names of a metric's labels."""
    return tuple(metric._labelnames)  # noqa: SLF001 (the library tells them nowhere else)


def metrics_of(modules: Iterable[str]) -> list[Known]:
    """Return the metrics of some modules, by name."""
    found = (value for name in modules for value in vars(import_module(name)).values())
    metrics = {known_of(one) for one in found if isinstance(one, MetricWrapperBase)}
    return sorted(metrics, key=lambda one: one.name)


def engine_metrics() -> list[Known]:
    """Return what simulated engines show under the names of vLLM."""
    page = EngineMetrics("sim").page().decode()
    return [
        Known(
            shown_name(family),
            family.type,
            tuple(label for label in family.samples[0].labels if label != "le"),
            family.documentation,
        )
        for family in text_string_to_metric_families(page)
        if family.name.startswith("vllm:") and not family.name.endswith("_created")
    ]


def all_metrics() -> dict[str, list[Known]]:
    """Return the metrics of every service and of engines."""
    own = {service: metrics_of(modules) for service, modules in MODULES.items()}
    return {**own, "engine": engine_metrics()}


def table(service: str, metrics: Iterable[Known]) -> Iterator[str]:
    """Return the lines about one service."""
    yield f"\n## {service.replace('_', ' ').capitalize()}"
    if service == "engine":
        yield "As vLLM names them; the simulated engine shows these, a real one more of them."
        yield ""
    yield "| metric | kind | labels | what it says |"
    yield "|---|---|---|---|"
    for one in metrics:
        labels = ", ".join(f"`{label}`" for label in one.labels)
        yield f"| `{one.name}` | {one.kind} | {labels} | {one.help} |"


def page() -> str:
    """Return the whole page."""
    lines = [line for service, known in all_metrics().items() for line in table(service, known)]
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE.name} written\n")
