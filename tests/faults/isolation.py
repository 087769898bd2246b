"""Whether the mesh says honestly how far an instance is isolated."""

from tests.faults.scenario import Play

NOT_ISOLATED = {"drain": "not drained", "eject": "not taken out"}
"""How an incident tells that a command failed."""


async def told_not_isolated(it: Play, action: str, why: str) -> None:
    """Wait until the incident says that the command failed; no step may claim otherwise."""
    told = """SELECT count(*) FROM incidents_v1
        WHERE opened_at >= %(since)s AND reason LIKE %(words)s"""
    words = f"{NOT_ISOLATED[action]}: {why}: %"
    await it.reach(lambda: it.count(told, words=words) == 1, f"told that it is {words}")
    assert steps_of(it, action) == []
    failed = """SELECT count(*) FROM commands_v1 WHERE issued_at >= %(since)s
        AND action = %(action)s AND status = 'failed' AND reason LIKE %(words)s"""
    assert it.count(failed, action=action, words=f"{why}: %") == 1


def steps_of(it: Play, action: str) -> list[str]:
    """Return the steps that the only command of an action is known to have taken, in order."""
    query = """SELECT steps FROM commands_v1
        WHERE issued_at >= %(since)s AND action = %(action)s"""
    [row] = it.site.fleet.rows(query, since=it.since, action=action)
    return [step["step"] for step in row["steps"]]


def drained_in_order(it: Play) -> bool:
    """Tell whether it was out before it was stopped, and not killed.

    A busy agent may say too late that it routes there no more.
    """
    first, second, *rest = steps_of(it, "drain")
    return first == "taken_out" and second in ("confirmed", "unconfirmed") and rest == ["stopped"]
