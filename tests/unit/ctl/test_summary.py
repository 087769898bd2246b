"""The whole mesh in a few rows and lines."""

from gatemesh_ctl import summary
from gatemesh_ctl.queues import QueueState
from gatemesh_ctl.store import Row


def test_pools_are_summed_up() -> None:
    """One line each, whatever their size."""
    health = [
        {
            "pool": "chat",
            "state": "healthy",
            "in_rotation": True,
            "paused": False,
            "mode": "observe",
        },
        {"pool": "chat", "state": "suspect", "in_rotation": True, "paused": False},
        {"pool": "chat", "state": "draining", "in_rotation": False, "paused": False},
        {"pool": "code", "state": "healthy", "in_rotation": True, "paused": True},
    ]
    unbraked = {"braked": False, "brake_reason": "", "held_incidents": 0}
    braked = {"braked": True, "brake_reason": "3 of 4", "held_incidents": 2}
    known = [{"pool": "chat", **unbraked}, {"pool": "code", **braked}]
    chat, code = summary.pool_rows(health, known)
    assert chat == {
        "pool": "chat",
        "instances": 3,
        "in_rotation": 2,
        "mode": "observe",
        "paused": False,
        "states": "1 draining, 1 healthy, 1 suspect",
        **unbraked,
    }
    assert code["paused"]
    assert summary.brakes_on([chat, code]) == [
        "pool code: the fleet brake is on (3 of 4), 2 incidents are held: "
        "gatemesh-ctl request reset_brake --pool code --backlog skip|replay"
    ]


def test_what_needs_a_person_is_said() -> None:
    """Queues that nobody reads, and dead letters."""
    rows = [
        summary.queue_row(QueueState("executor.commands", 0, 0)),
        summary.queue_row(QueueState("health_manager.verdicts", 5, 1)),
        summary.queue_row(QueueState("gatemesh.dead.letters", 2, 0)),
    ]
    assert summary.remarks(rows) == [
        "nobody reads executor.commands: is the executor running?",
        "2 dead letters: gatemesh-ctl dead-letters",
    ]


def test_queues_of_one_service_are_one_line() -> None:
    """Its absence is one thing to know, however many queues it has."""
    rows = [
        {"queue": f"health_manager.{name}", "messages": 0, "consumers": 0} for name in ("a", "b")
    ]
    assert summary.remarks(rows) == [
        "nobody reads health_manager.a and 1 other queue of it: is the health_manager running?"
    ]


def test_what_is_still_being_started_needs_nobody() -> None:
    """Its readers are yet to come; dead letters and brakes count at any time."""
    rows = [
        {"queue": "executor.commands", "messages": 0, "consumers": 0},
        {"queue": "gatemesh.dead.letters", "messages": 2, "consumers": 0},
    ]
    assert summary.needs({"queues": rows}, starting=True) == [
        "2 dead letters: gatemesh-ctl dead-letters"
    ]


def test_unguarded_answers_are_told() -> None:
    """Per pool, and only where there are any."""
    rows: list[Row] = [
        {"pool": "chat", "requests": 40, "tokens": 900, "unguarded": 3},
        {"pool": "code", "requests": 5, "tokens": 50, "unguarded": 0},
    ]
    [line] = summary.unguarded_in(rows)
    assert line.startswith("pool chat: 3 of 40 answers within an hour passed unguarded")


def test_only_instances_that_need_a_word_are_named() -> None:
    """A fleet of hundreds is mostly well."""
    well = {"instance_id": "engine-0", "state": "healthy", "incident_id": None}
    held = {"instance_id": "engine-1", "state": "healthy", "incident_id": "i-1"}
    out = {"instance_id": "engine-2", "state": "quarantined", "incident_id": None}
    assert summary.unwell([well, held, out]) == [held, out]


def test_all_that_needs_a_person_is_in_one_list() -> None:
    """Brakes, queues and unguarded answers."""
    parts: dict[str, list[Row]] = {
        "pools": [{"pool": "p", "braked": True, "brake_reason": "why", "held_incidents": 1}],
        "queues": [{"queue": "executor.commands", "messages": 0, "consumers": 0}],
        "traffic": [{"pool": "p", "requests": 2, "tokens": 9, "unguarded": 1}],
    }
    assert len(summary.needs(parts)) == 3
    assert summary.needs({}) == []
