"""The metrics of several workers as those of one agent: counts are added, states are not."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

Labels = tuple[tuple[str, str], ...]
Series = tuple[str, Labels]
Figures = dict[Series, float]

COUNTS = ("counter", "histogram", "summary")
ADDED_GAUGES = frozenset(
    {
        "gatemesh_agent_in_flight",
        "gatemesh_agent_spool_depth",
        "process_virtual_memory_bytes",
        "process_resident_memory_bytes",
        "process_open_fds",
    }
)
LEAST_GAUGES = frozenset({"gatemesh_agent_routing_version", "process_start_time_seconds"})
"""The agent goes by a table once all of its workers do. Other gauges show their highest."""
CREATED = "_created"
OWN = -1
"""Stands for the supervisor among the workers."""
SUPERVISORS = ("process_", "gatemesh_need_missing")
"""What the supervisor itself has to show; it serves nobody."""


def joined_by(name: str, kind: str) -> Callable[[float, float], float]:
    """Return how the figures of two workers become one."""
    if name.endswith(CREATED) or name in LEAST_GAUGES:
        return min
    return add if kind in COUNTS or name in ADDED_GAUGES else max


def add(one: float, other: float) -> float:
    """Return the sum."""
    return one + other


@dataclass
class Family:
    """One metric, and the figures of its series."""

    name: str
    kind: str
    text: str
    figures: Figures = field(default_factory=dict)

    def join(self, other: "Family") -> None:
        """Take in the figures of another worker."""
        for series, value in other.figures.items():
            join = joined_by(self.name, self.kind)
            known = self.figures.get(series)
            self.figures[series] = value if known is None else join(known, value)

    def metric(self) -> Metric:
        """Return it as it is exposed."""
        metric = Metric(self.name, self.text, self.kind)
        metric.samples = [
            Sample(name, dict(labels), value) for (name, labels), value in self.figures.items()
        ]
        return metric


Page = dict[str, Family]


def read_page(text: str) -> Page:
    """Read what one worker exposes."""
    page: Page = {}
    for metric in text_string_to_metric_families(text):
        figures = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for sample in metric.samples
        }
        page[metric.name] = Family(metric.name, metric.type, metric.documentation, figures)
    return page


def joined(pages: Iterable[Page]) -> Page:
    """Return the pages of several workers as one."""
    whole: Page = {}
    for page in pages:
        for name, family in page.items():
            known = whole.setdefault(name, Family(name, family.kind, family.text))
            known.join(family)
    return whole


def supervisors(page: Page) -> Page:
    """Return what the supervisor shows of itself."""
    return {name: family for name, family in page.items() if name.startswith(SUPERVISORS)}


def counts_in(page: Page) -> Page:
    """Return what counts on when a worker is gone: not its gauges."""
    return {name: family for name, family in page.items() if family.kind in COUNTS}


class WorkerMetrics(Collector):
    """Exposes what all workers count; what one had counted before it ended is not lost."""

    def __init__(self, read: Callable[[], Mapping[int, str]]) -> None:
        self._read = read
        self._last: dict[int, Page] = {}
        self._ended: Page = {}
        self._ends: Counter[int] = Counter()
        self._lock = Lock()
        """Workers are read by the threads that answer scrapes, and end in the event loop."""

    def ended(self, index: int) -> None:
        """Keep what a worker had counted when it was read last: its successor begins at 0."""
        with self._lock:
            self._ends[index] += 1
            page = self._last.pop(index, None)
            if page is not None:
                self._ended = joined((self._ended, counts_in(page)))

    def collect(self) -> Iterator[Metric]:
        """Read every worker and yield the metrics of all together."""
        ends = self._ends.copy()
        pages = {index: read_page(text) for index, text in self._read().items()}
        with self._lock:
            for index, page in pages.items():
                # What ended while it was read is counted among the ended already.
                if self._ends[index] == ends[index]:
                    self._last[index] = page if index != OWN else supervisors(page)
            whole = joined((self._ended, *self._last.values()))
        for family in whole.values():
            yield family.metric()


def registry_of(metrics: WorkerMetrics) -> CollectorRegistry:
    """Return a registry that exposes them and nothing else."""
    # Without a look at the workers now: there are none yet.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    return registry
