"""What a scenario may be checked for besides that nothing was lost."""

from typing import Any

from tests.faults.scenario import Check, Play


async def clients_saw_nothing(it: Play) -> None:
    """Every request of every client was answered whole."""
    assert it.traffic.errors == []


async def agent_told_all(it: Play) -> None:
    """Of every garbled answer that reached a client the agent's verdict is in SQL."""
    # By name alone: a manager whose clock was set back has received them before the beginning.
    query = """SELECT DISTINCT request_id FROM verdicts_v1
        WHERE outcome = 'failed' AND request_id = ANY(%(marked)s)"""

    def untold() -> set[str]:
        rows = it.site.fleet.rows(query, marked=sorted(it.traffic.marked))
        return it.traffic.marked - {str(row["request_id"]) for row in rows}

    assert it.traffic.marked
    await it.reach(lambda: not untold(), "the verdict on every garbled answer")


async def nobody_was_touched(it: Play) -> None:
    """No command was given and no incident opened."""
    opened = "SELECT count(*) FROM incidents_v1 WHERE opened_at >= %(since)s"
    assert it.commands() == [], told(it)
    assert it.count(opened) == 0, told(it)


def told(it: Play) -> str:
    """Return what was held against whom, and what was done, for the one who must find out why."""
    incidents = it.site.fleet.rows(
        """SELECT opened_at, instance_id, condition, cause, playbook, status FROM incidents_v1
        WHERE opened_at >= %(since)s ORDER BY opened_at""",
        since=it.since,
    )
    failures = it.site.fleet.rows(
        """SELECT received_at, instance_id, request_id, check_level, reason, attribution, score,
        threshold, details FROM verdicts_v1 WHERE outcome = 'failed' AND received_at >= %(since)s
        AND NOT request_id = ANY(%(marked)s) ORDER BY received_at""",
        since=it.since,
        marked=sorted(it.traffic.marked),
    )
    return "\n".join(map(str, [*incidents, *moves(it), *failures]))


def moves(it: Play) -> list[dict[str, Any]]:
    """Return what happened to the instances, oldest first."""
    query = """SELECT at, instance_id, before_state, trigger, after_state FROM transitions_v1
        WHERE at >= %(since)s ORDER BY at"""
    return it.site.fleet.rows(query, since=it.since)


def restarted_once(instance: str) -> Check:
    """Return the check that one instance was restarted once, and no other was touched."""

    async def check(it: Play) -> None:
        assert it.commands(instance).count("restart") == 1, told(it)
        assert it.commands() == it.commands(instance), told(it)

    return check


async def enough_kept_serving(it: Play) -> None:
    """The ejection budget was kept all the time."""
    assert it.facts["least_serving"] >= 2


async def brake_fell(it: Play) -> None:
    """So many were accused at once that a person was asked."""
    assert it.facts["brake_fell"], told(it)


async def only_ejected(it: Play) -> None:
    """Nothing was done but what the operator asked for."""
    assert it.commands() == ["eject"], told(it)
