"""Other rules over the same history: what they would have done."""

import pytest
from benchmarks.recorded import DAWN, MadeUpPool

from gatemesh_health_manager.history import History
from gatemesh_health_manager.policy import Policy, parse_policy
from gatemesh_health_manager.usual import Episode
from gatemesh_health_manager.what_if import answering, what_if

from .samples import at, probe_result, record, ticket

NAMES = ("engine-0", "engine-1", "engine-2", "engine-3")
BLIND = """
[defaults.condition_a]
enabled = false
[defaults.condition_b]
enabled = false
[defaults.condition_c]
enabled = false
[defaults.condition_d]
enabled = false
"""


def sick(share: float, *, hard: bool = False) -> History:
    """Return the history of a pool in which one engine goes bad after a minute."""
    pool = MadeUpPool(NAMES, seed=5, mishaps=False)
    pool.live(60, 20)
    pool.engines["engine-1"].failing_share, pool.engines["engine-1"].hard = share, hard
    pool.live(240, 20)
    return pool.recorder.history()


def played(history: History, rules: str) -> tuple[list[Episode], list[Episode]]:
    """Return the incidents as they were, and as they would have been."""
    found = what_if(history, parse_policy(rules))
    return found.stored.episodes(DAWN), found.other.episodes(DAWN)


@pytest.mark.parametrize("hard", [False, True], ids=["soft", "proof"])
def test_the_same_rules_open_the_same_incidents(*, hard: bool) -> None:
    """At the same time and by the same condition; what follows is a model."""
    stored, other = played(sick(0.9, hard=hard), "")
    assert stored
    assert (other[0].instance_id, other[0].condition) == ("engine-1", "B" if hard else "A")
    assert other[0].opened_at == stored[0].opened_at
    assert other[0].isolated_s == stored[0].isolated_s is not None


def test_rules_that_see_nothing_take_nothing_out() -> None:
    """It goes on serving, as nothing is ordered."""
    history = sick(0.9)
    found = what_if(history, parse_policy(BLIND))
    assert found.stored.episodes(DAWN)
    assert found.other.episodes(DAWN) == []
    assert found.stored.out_s(at(0)) != found.other.out_s(at(0)) == 0.0


def test_stricter_rules_isolate_sooner() -> None:
    """Two failures instead of six."""
    rules = "[defaults.condition_a]\nmore_than = 1\nmin_prompts = 1\n"
    stored, other = played(sick(0.5), rules)
    assert other[0].opened_at < stored[0].opened_at
    assert (other[0].isolated_s or 0) < (stored[0].isolated_s or 0)


def test_the_model_brings_it_back() -> None:
    """Drained, restarted, probed, back: its time out is about what such commands took."""
    found = what_if(sick(0.9), Policy())
    assert [one.status for one in found.other.episodes(DAWN)] == ["resolved"]


def test_a_history_of_mishaps_is_played_to_its_end() -> None:
    """Exits, requests and failed commands of another course of things upset nothing."""
    pool = MadeUpPool(NAMES, seed=4)
    pool.live(500, 10)
    found = what_if(pool.recorder.history(), parse_policy("[defaults.condition_a]\nmore_than = 0"))
    assert found.other.episodes(DAWN)


def test_a_recorded_suite_answers_the_present_ticket() -> None:
    """Ticket ids differ, since other events gave them."""
    said = probe_result("failed", "then").model_copy(update={"details": {"ticket_id": "then"}})
    asked = answering(record(ticket=ticket()), said)
    assert asked == {"details": {}, "request_id": "ticket-1"}
    assert answering(record(), said) == {"details": {}}
