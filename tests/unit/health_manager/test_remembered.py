"""Failures in memory give the facts that a window in the database gives."""

from dataclasses import replace
from typing import Any

from gatemesh_common.messages import CheckLevel, Verdict
from gatemesh_health_manager.facts import Facts, copy_key
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.remembered import Failures

from .samples import NOW, at, record, verdict

POLICY = Policy()


def pool() -> Fleet:
    """Return a pool of one healthy instance."""
    return Fleet(POLICY, [PoolRecord("default")], [record()])


def failed(second: float, prompt: str, level: CheckLevel = CheckLevel.L1, **fields: Any) -> Verdict:
    """Return a soft failure of a prompt."""
    return verdict(level, timestamp=at(second), prompt_fingerprint=prompt, **fields)


def facts_after(*batches: list[Verdict], fleet: Fleet | None = None) -> Facts | None:
    """Return what is known after the last batch."""
    about, failures = fleet or pool(), Failures()
    for batch in batches:
        failures.note(about, batch, at(1000))
    return failures.facts(POLICY, about, batches[-1], at(1000)).get("engine-0")


def test_a_window_reaches_back_over_batches() -> None:
    """As long as the rule says, ends included; each prompt counts once."""
    old = [failed(0, "a"), failed(1, "b"), failed(2, "b")]
    assert facts_after(old, [failed(60, "c")]) == Facts(3, 3)
    assert facts_after(old, [failed(61.5, "c")]) == Facts(2, 2)


def test_what_was_answered_is_over() -> None:
    """Failures up to that moment are not counted again."""
    fleet = pool()
    fleet.put(replace(fleet.records["engine-0"], evidence_since=at(0)))
    assert facts_after([failed(0, "a")], [failed(1, "b")], fleet=fleet) == Facts(1, 1)


def test_other_lives_gates_and_faults_of_requests_do_not_count() -> None:
    """Only what condition A may act by."""
    other = [
        failed(0, "a", incarnation=0),
        failed(0, "b", level=CheckLevel.L3),
        failed(0, "c", attribution="request"),
        failed(0, "d", outcome="passed"),
    ]
    assert facts_after(other, [failed(1, "e")]) == Facts(1, 1)


def test_where_it_cannot_act_nothing_is_counted() -> None:
    """As the manager reads no window there."""
    assert facts_after([failed(0, "a", level=CheckLevel.L3)]) is None


def test_the_latest_copy_is_found() -> None:
    """Of the same prompt, gate and life; the batch at hand is none of them."""
    fleet, failures, again = pool(), Failures(), failed(9, "a")
    failures.note(fleet, [failed(3, "a"), failed(1, "a"), failed(5, "b")], at(10))
    copies = failures.copies(fleet, [again])
    assert copies.note(again, at(10)) == at(3)
    fleet.put(replace(fleet.records["engine-0"], incarnation=2))
    assert copy_key(again)[0] == "engine-0"
    assert failures.copies(fleet, [again]).note(again, at(10)) is None


def test_moments_ahead_count_as_now() -> None:
    """A clock that runs ahead pushes nothing into the future."""
    failures, fleet = Failures(), pool()
    ahead = failed(500, "a")
    failures.note(fleet, [ahead], NOW)
    assert failures.facts(POLICY, fleet, [ahead], NOW) == {"engine-0": Facts(1, 1)}
