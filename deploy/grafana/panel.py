"""What a panel is, and short ways to write its expressions."""

from dataclasses import dataclass
from typing import Literal

EVERY = "$__rate_interval"


@dataclass(frozen=True)
class Query:
    """One expression, and the name of each line that it draws."""

    expression: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """One drawing."""

    group: str
    title: str
    says: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: Literal["stat", "timeseries"] = "timeseries"
    stacked: bool = False
    red_from: float | None = None


@dataclass(frozen=True)
class Dashboard:
    """One page of panels."""

    name: str
    says: str
    panels: tuple[Panel, ...]
    by_pool: bool = False


def selected(labels: str) -> str:
    """Return the braces of a selector; none where nothing is selected."""
    return f"{{{labels}}}" if labels else ""


def lines(by: str) -> str:
    """Return the name of a line by its labels."""
    return " ".join(f"{{{{{label}}}}}" for label in by.split(", ") if label)


def rate(metric: str, by: str = "", labels: str = "") -> Query:
    """Return how often something happens per second, by labels."""
    legend = lines(by)
    total = f"sum by ({by})" if by else "sum"
    return Query(f"{total} (rate({metric}{selected(labels)}[{EVERY}]))", legend or "all")


def quantiles(metric: str, by: str = "", *shares: float, labels: str = "") -> tuple[Query, ...]:
    """Return quantiles of a histogram; half and 95 in 100 where nothing else is asked."""
    legend = lines(by)
    over = f"le, {by}" if by else "le"
    buckets = f"sum by ({over}) (rate({metric}_bucket{selected(labels)}[{EVERY}]))"
    return tuple(
        Query(f"histogram_quantile({share}, {buckets})", f"p{share * 100:g} {legend}".strip())
        for share in shares or (0.5, 0.95)
    )


def share(part: str, whole: str, by: str) -> Query:
    """Return what share of the whole a part is, by labels."""
    legend = lines(by)
    total = f"sum by ({by})" if by else "sum"
    return Query(
        f"{total} (rate({part}[{EVERY}])) / {total} (rate({whole}[{EVERY}]))", legend or "share"
    )
