"""Figures of a run beside other gateways, and how they are shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.peer_load import Tally

Row = Mapping[str, float]
Results = Mapping[str, Mapping[str, Row]]
"""By load and way."""


@dataclass(frozen=True)
class Figures:
    """What one run of one load gave."""

    requests_per_s: float
    chunks_per_s: float
    mean_ms: float
    p50_ms: float
    p99_ms: float
    first_mean_ms: float
    first_p50_ms: float
    first_p99_ms: float
    errors: float
    cpu_us_per_request: float
    cpu_us_per_chunk: float
    memory_mib: float
    client_cpu_share: float


def figures_of(tally: Tally, cpu_s: float, memory_bytes: int) -> Figures:
    """Return the figures of a run."""
    latencies, first = sorted(tally.latencies_s), sorted(tally.first_bytes_s)
    count = len(latencies)
    return Figures(
        requests_per_s=count / tally.wall_s,
        chunks_per_s=tally.chunks / tally.wall_s,
        mean_ms=mean_ms(latencies),
        p50_ms=rank_ms(latencies, 0.5),
        p99_ms=rank_ms(latencies, 0.99),
        first_mean_ms=mean_ms(first),
        first_p50_ms=rank_ms(first, 0.5),
        first_p99_ms=rank_ms(first, 0.99),
        errors=float(tally.errors),
        cpu_us_per_request=cpu_s / max(count, 1) * 1e6,
        cpu_us_per_chunk=cpu_s / max(tally.chunks, 1) * 1e6 if tally.chunks else 0.0,
        memory_mib=memory_bytes / 2**20,
        client_cpu_share=tally.client_cpu_s / tally.wall_s,
    )


def mean_ms(ordered: list[float]) -> float:
    """Return the mean in milliseconds; 0 of nothing."""
    return sum(ordered) / len(ordered) * 1000 if ordered else 0.0


def rank_ms(ordered: list[float], share: float) -> float:
    """Return the figure below which such a share lies, in milliseconds; 0 of nothing."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000 if ordered else 0.0


def added_by(row: Row, direct: Row) -> dict[str, float]:
    """Return what a gateway adds to the direct connection's mean, in milliseconds."""
    return {
        "added_p50_ms": row["p50_ms"] - direct["mean_ms"],
        "added_p99_ms": row["p99_ms"] - direct["mean_ms"],
        "added_first_p50_ms": row["first_p50_ms"] - direct["first_mean_ms"],
        "added_first_p99_ms": row["first_p99_ms"] - direct["first_mean_ms"],
    }


def ratios_of(results: Results) -> dict[str, dict[str, dict[str, float]]]:
    """Return, by load and gateway, what it adds, and how many of its requests the agent serves."""
    ratios: dict[str, dict[str, dict[str, float]]] = {}
    for load, by_way in results.items():
        direct = by_way["direct"]
        own = by_way.get("agent")
        for way, row in by_way.items():
            if way == "direct":
                continue
            found = added_by(row, direct)
            found["of_direct"] = of(row, direct, "chunks_per_s") or of(
                row, direct, "requests_per_s"
            )
            if own is not None and own["cpu_us_per_request"]:
                found["agent_per_core_of_it"] = (
                    row["cpu_us_per_request"] / own["cpu_us_per_request"]
                )
            ratios.setdefault(load, {})[way] = found
    return ratios


def of(row: Row, other: Row, name: str) -> float:
    """Return a figure as a share of another row's; 0 where that is nothing."""
    return row[name] / other[name] if other[name] else 0.0


HEADS = (
    *("way", "req/s", "chunks/s", "+p50 ms", "+p99 ms", "+first p50", "+first p99"),
    *("CPU us/req", "us/chunk", "MiB", "of direct", "agent is", "errors"),
)


def show(report: Mapping[str, Any]) -> None:
    """Print a report as a table that can stand in a page."""
    print(f"machine: {report['machine']}")
    for name, why in report["missing"].items():
        print(f"left out: {name}: {why}")
    for load, by_way in report["results"].items():
        print(
            f"\n**{load}** (client {by_way['direct']['client_cpu_share']:.0%} of a core, direct)\n"
        )
        print("| " + " | ".join(HEADS) + " |")
        print("|" + "---|" * len(HEADS))
        for way, row in by_way.items():
            print("| " + " | ".join(cells(way, row, report["ratios"][load].get(way))) + " |")
    for name in ("us_per_token_by_length", "memory"):
        if name in report:
            print(f"\n{name}: {report[name]}")


def cells(way: str, row: Row, ratio: Row | None) -> list[str]:
    """Return the cells of one row; of the direct connection its own latencies."""
    latencies = (
        (row["p50_ms"], row["p99_ms"], row["first_p50_ms"], row["first_p99_ms"])
        if ratio is None
        else tuple(ratio[name] for name in ("added_p50_ms", "added_p99_ms"))
        + tuple(ratio[name] for name in ("added_first_p50_ms", "added_first_p99_ms"))
    )
    own = [] if ratio is None else [ratio["of_direct"], ratio.get("agent_per_core_of_it", 0.0)]
    return [
        way,
        f"{row['requests_per_s']:,.0f}",
        f"{row['chunks_per_s']:,.0f}",
        *(f"{each:.2f}" for each in latencies),
        f"{row['cpu_us_per_request']:,.0f}",
        f"{row['cpu_us_per_chunk']:.1f}",
        f"{row['memory_mib']:.0f}",
        *(f"{each:.2f}x" for each in own or (1.0, 0.0)),
        f"{row['errors']:.0f}",
    ]
