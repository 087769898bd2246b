"""Following a request to its end."""

from datetime import UTC, datetime, timedelta

import pytest

from gatemesh_common.messages import ActionRequest, TrialRequest
from gatemesh_ctl.following import Ending, Follower, judge
from gatemesh_ctl.store import Row

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Told:
    """A history that grows with each look."""

    def __init__(
        self, decisions: list[Row | None], incidents: list[Row], events: list[Row]
    ) -> None:
        self._decisions = decisions
        self._incidents = incidents
        self._events = events
        self.looked_since: datetime | None = None

    def request(self, message_id: str) -> Row | None:
        """Return the next decision; the last one stays."""
        return self._decisions.pop(0) if len(self._decisions) > 1 else self._decisions[0]

    def operator_incident(self, instance_id: str, since: datetime) -> Row | None:
        """Return the next state of the incident; the last one stays."""
        self.looked_since = since
        if not self._incidents:
            return None
        return self._incidents.pop(0) if len(self._incidents) > 1 else self._incidents[0]

    def pool_incidents(self, pool: str, playbook: str, since: datetime) -> list[Row]:
        """Return the next state of the pool's incidents; the last one stays."""
        self.looked_since = since
        found = self._incidents.pop(0) if len(self._incidents) > 1 else self._incidents[0]
        rows: list[Row] = found["rows"]
        return rows

    def incident_timeline(self, incident: Row) -> list[Row]:
        """Return the events up to now."""
        return self._events[: incident["events"]]


ACCEPTED = {"outcome": "accepted", "why": "", "decided_at": NOW}
REFUSED = {"outcome": "refused", "why": "it is healthy", "decided_at": NOW}


def incident(status: str, events: int = 0) -> Row:
    """Return an incident of which so many events are known."""
    return {"incident_id": "i-1", "status": status, "reason": "asked", "events": events}


def event(what: str, seconds: float = 0, kind: str = "step") -> Row:
    """Return an event of the incident, so long after the decision."""
    at = NOW + timedelta(seconds=seconds)
    named = {"instance_id": "engine-0", "incident_id": "i-1", "detail": None}
    return {"at": at, "kind": kind, "what": what, **named}


def follower(history: Told, told: list[Row], action: str = "restart") -> Follower:
    """Return a follower whose time passes by sleeping."""
    request = ActionRequest.model_validate(
        {
            "action": action,
            "instance_id": None if action in ("pause", "roll_back") else "engine-0",
            "weight": 0.5 if action == "set_weight" else None,
            "requested_by": "ann",
            "timestamp": NOW,
        }
    )
    elapsed = [0.0]

    def sleep(seconds: float) -> None:
        elapsed[0] += seconds

    return Follower(history, request, told.append, lambda: elapsed[0], sleep)


def test_a_restart_is_followed_to_its_end() -> None:
    """Each event is told once, in order; verdicts and what was before are no events of it."""
    kinds = ["state", "verdict", "step"]
    events = [event(str(n), kind=kind) for n, kind in enumerate(kinds)]
    events.insert(0, event("old", -30, "command"))
    history = Told([None, None, ACCEPTED], [incident("open", 2), incident("resolved", 4)], events)
    told: list[Row] = []
    followed = follower(history, told).follow(60)
    assert (followed.ending, followed.why) == (Ending.DONE, "resolved: asked")
    assert [row["what"] for row in told] == ["0", "2"]
    assert history.looked_since == NOW - timedelta(seconds=1)


def test_an_event_that_comes_late_is_told_and_none_twice() -> None:
    """A report has the executor's moment: it is stored behind events of the manager's."""
    early, late, last = event("ordered"), event("report", 1, "report"), event("quarantined", 2)

    class Growing(Told):
        def incident_timeline(self, incident: Row) -> list[Row]:
            """Return one more event, not at the end, once it is over."""
            return [early, last] if incident["status"] == "open" else [early, late, last]

    told: list[Row] = []
    history = Growing([ACCEPTED], [incident("open"), incident("quarantined")], [])
    assert follower(history, told, "drain").follow(60).ending is Ending.DONE
    assert [row["what"] for row in told] == ["ordered", "quarantined", "report"]


def test_a_refusal_says_why() -> None:
    """In the manager's words."""
    followed = follower(Told([REFUSED], [], []), []).follow(60)
    assert (followed.ending, followed.why) == (Ending.REFUSED, "it is healthy")


def test_a_pause_is_done_once_accepted() -> None:
    """Nothing follows it."""
    assert follower(Told([ACCEPTED], [], []), [], "pause").follow(60).ending is Ending.DONE


@pytest.mark.parametrize(
    "history", [Told([None], [], []), Told([ACCEPTED], [incident("open")], [])]
)
def test_the_time_is_bounded(history: Told) -> None:
    """No manager, or a very slow engine."""
    followed = follower(history, []).follow(10)
    assert (followed.ending, followed.why) == (Ending.UNDECIDED, "not ended in 10 s")


@pytest.mark.parametrize(
    ("action", "status", "ending"),
    [
        ("restart", "resolved", Ending.DONE),
        ("restart", "quarantined", Ending.FAILED),
        ("eject", "expired", Ending.FAILED),
        ("drain", "quarantined", Ending.DONE),
        ("quarantine", "quarantined", Ending.DONE),
        ("drain", "resolved", Ending.FAILED),
        ("release", "resolved", Ending.DONE),
        ("restart", "open", None),
        ("restart", "held", None),
    ],
)
def test_what_counts_as_done(action: str, status: str, ending: Ending | None) -> None:
    """A drain wants it out, a restart wants it back."""
    followed = judge(action, incident(status))
    assert (followed.ending if followed else None) is ending


def test_a_trial_ends_with_what_it_would_do() -> None:
    """No incident is waited for; a refusal is one."""
    body = {"action": "drain", "instance_id": "engine-0", "requested_by": "ann", "timestamp": NOW}
    request = TrialRequest.model_validate(body)
    history = Told([None, ACCEPTED | {"why": "engine-0: healthy -> draining"}], [], [])
    told: list[Row] = []
    one = Follower(history, request, told.append, lambda: 0.0, lambda _: None)
    followed = one.follow(5)
    assert followed.ending is Ending.DONE
    assert followed.why == "nothing was done; it would: engine-0: healthy -> draining"
    refused = Follower(Told([REFUSED], [], []), request, told.append, lambda: 0.0, lambda _: None)
    assert refused.follow(5).ending is Ending.REFUSED
    assert told == []


def test_a_ceiling_is_done_once_accepted() -> None:
    """It opens no incident."""
    accepted = {**ACCEPTED, "why": "weight at most 0.5"}
    followed = follower(Told([accepted], [], []), [], "set_weight").follow(10)
    assert (followed.ending, followed.why) == (Ending.DONE, "weight at most 0.5")


@pytest.mark.parametrize(
    ("last", "ending"), [("resolved", Ending.DONE), ("expired", Ending.FAILED)]
)
def test_a_pool_that_is_rolled_back_is_followed_to_the_last(last: str, ending: Ending) -> None:
    """Each instance ends by itself; one that failed makes the whole fail."""
    one = {**incident("resolved"), "instance_id": "a"}
    rows: list[Row] = [
        {"rows": []},
        {"rows": [one, {**incident("held"), "instance_id": "b"}]},
        {"rows": [one, {**incident(last), "instance_id": "b"}]},
    ]
    followed = follower(Told([ACCEPTED], rows, []), [], "roll_back").follow(10)
    assert followed.ending is ending
    assert followed.why == f"a: resolved: asked; b: {last}: asked"
