"""The whole mesh in a few rows and lines (pure)."""

from collections import Counter
from typing import TYPE_CHECKING

from gatemesh_common.topology import DEAD_LETTERS

if TYPE_CHECKING:
    from gatemesh_ctl.queues import QueueState
    from gatemesh_ctl.store import Row

WELL = ("healthy",)
"""States that need no word in a summary."""


def pool_rows(health: "list[Row]", known: "list[Row]") -> "list[Row]":
    """Return one row per pool that has instances."""
    brakes = {row["pool"]: row for row in known}
    pools: dict[str, list[Row]] = {}
    for row in health:
        pools.setdefault(row["pool"], []).append(row)
    return [
        {
            "pool": pool,
            "instances": len(rows),
            "in_rotation": sum(row["in_rotation"] for row in rows),
            "mode": rows[0].get("mode", "act"),
            "paused": any(row["paused"] for row in rows),
            "braked": brakes[pool]["braked"],
            "brake_reason": brakes[pool]["brake_reason"],
            "held_incidents": brakes[pool]["held_incidents"],
            "states": ", ".join(
                f"{count} {state}"
                for state, count in sorted(Counter(row["state"] for row in rows).items())
            ),
        }
        for pool, rows in pools.items()
    ]


def queue_row(state: "QueueState") -> "Row":
    """Return a queue as a row."""
    return {"queue": state.name, "messages": state.messages, "consumers": state.consumers}


def remarks(queues: "list[Row]") -> list[str]:
    """Return what a person should know of the queues."""
    lines = [
        f"{row['messages']} dead letters: gatemesh-ctl dead-letters"
        for row in queues
        if row["queue"] == DEAD_LETTERS and row["messages"]
    ]
    return [*unread(queues), *lines]


def unread(queues: "list[Row]") -> list[str]:
    """Return a line for each service some of whose queues nobody reads."""
    alone: dict[str, list[str]] = {}
    for row in queues:
        if row["queue"] != DEAD_LETTERS and not row["consumers"]:
            alone.setdefault(row["queue"].partition(".")[0], []).append(row["queue"])
    return [
        f"nobody reads {names[0]}{others(len(names) - 1)}: is the {service} running?"
        for service, names in alone.items()
    ]


def others(count: int) -> str:
    """Return how many more there are, in words."""
    return f" and {count} other queue{'s' if count > 1 else ''} of it" if count else ""


def brakes_on(pools: "list[Row]") -> list[str]:
    """Return a line for each pool that waits for a person since the fleet brake fell."""
    return [
        f"pool {row['pool']}: the fleet brake is on ({row['brake_reason']}), "
        f"{row['held_incidents']} incidents are held: "
        f"gatemesh-ctl request reset_brake --pool {row['pool']} --backlog skip|replay"
        for row in pools
        if row["braked"]
    ]


def unguarded_in(traffic: "list[Row]") -> list[str]:
    """Return a line for each pool some of whose answers no gate looked at."""
    return [
        f"pool {row['pool']}: {row['unguarded']} of {row['requests']} answers within an hour "
        "passed unguarded (docs/agent.md: what is guarded)"
        for row in traffic
        if row["unguarded"]
    ]


def unwell(health: "list[Row]") -> "list[Row]":
    """Return the instances that a person may want to know of."""
    return [row for row in health if row["state"] not in WELL or row["incident_id"] is not None]


def needs(parts: "dict[str, list[Row]]", *, starting: bool = False) -> list[str]:
    """Return all that needs a person, one line each; a service that is to come needs nobody."""
    queues = parts.get("queues", [])
    return [
        *brakes_on(parts.get("pools", [])),
        *remarks([row for row in queues if row["queue"] == DEAD_LETTERS] if starting else queues),
        *unguarded_in(parts.get("traffic", [])),
    ]
