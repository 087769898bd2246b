"""When instances in rotation are probed, and what brakes it."""

from typing import Any

import pytest

from gatemesh_common.messages import InstanceState
from gatemesh_health_manager.probing import schedule_probe, want_probe, want_second_probe
from gatemesh_health_manager.record import InstanceRecord, PoolFacts

from .samples import ROOM, at, case, in_pool, record, ticket

S = InstanceState


def purpose(about: InstanceRecord, after_s: float, requests: int = 0, **known: Any) -> str | None:
    """Return what an instance is asked for at a moment."""
    one = case(about, known.get("pool", ROOM), known.get("policy", in_pool()), after_s=after_s)
    schedule_probe(one, requests)
    return one.record.ticket.purpose if one.record.ticket else None


def asked(**fields: Any) -> InstanceRecord:
    """Return an instance whose ticket is open for two minutes."""
    known: dict[str, Any] = {
        "ticket": ticket("routine"),
        "ticket_until": at(120),
        "probed_at": at(0),
    }
    return record(**(known | fields))


@pytest.mark.parametrize(
    ("after_s", "requests", "wanted"),
    [
        pytest.param(299, 0, None, id="not-yet"),
        pytest.param(300, 0, "routine", id="idle"),
        pytest.param(40, 499, None, id="few-requests"),
        pytest.param(40, 500, "routine", id="many-requests"),
        pytest.param(29, 500, None, id="within-the-gap"),
        pytest.param(-1, 0, "routine", id="a-clock-that-was-set-back"),
    ],
)
def test_a_probe_is_due(after_s: float, requests: int, wanted: str | None) -> None:
    """After enough requests or enough time."""
    assert purpose(record(probed_at=at(0)), after_s, requests) == wanted


def test_one_that_was_never_probed_in_rotation_counts_from_its_state() -> None:
    """Such as the rows of an earlier release."""
    assert purpose(record(), 299) is None
    assert purpose(record(), 300) == "routine"


@pytest.mark.parametrize("state", [s for s in S if s not in {S.HEALTHY, S.SUSPECT}])
def test_only_serving_instances_are_scheduled(state: InstanceState) -> None:
    """Elsewhere probes decide, or there is nobody to ask."""
    assert purpose(record(state), 9999) is None


def test_one_ticket_at_a_time() -> None:
    """A second one waits for the end of the first."""
    one = case(asked(probe_from=at(1)), after_s=60)
    schedule_probe(one, 9999)
    assert one.record.ticket == ticket("routine")


def test_a_ticket_that_nobody_answers_is_void() -> None:
    """Without evidence; answers that come later find it closed."""
    one = case(asked(), after_s=120)
    schedule_probe(one)
    assert (one.record.ticket, one.record.ticket_until) == (None, None)
    assert one.record.closed_tickets == ("ticket-1",)
    assert one.record.penalty == 0
    assert purpose(asked(ticket_until=at(9999)), 1) is None, "of a clock that was set back"


def test_only_a_share_of_a_pool_is_probed_at_once() -> None:
    """One always may be."""
    due = record(probed_at=at(-400))
    rules = in_pool(probes={"max_parallel_share": 0.5})
    for probing, serving, wanted in ((1, 4, "routine"), (2, 4, None), (0, 1, "routine")):
        pool = PoolFacts(total=4, serving=serving, probing=probing)
        assert purpose(due, 0, pool=pool, policy=rules) == wanted


def test_probes_go_on_in_a_paused_pool() -> None:
    """Pause stops acting, not judging."""
    paused = PoolFacts(total=4, serving=4, paused=True)
    assert purpose(record(probed_at=at(-400)), 0, pool=paused) == "routine"


def test_probes_can_be_switched_off() -> None:
    """With what is wanted, too."""
    off = in_pool(probes={"enabled": False})
    assert purpose(record(probed_at=at(-400), probe_from=at(-1)), 0, policy=off) is None


def test_a_suspicion_waits_for_the_gap() -> None:
    """A flood of failures is one probe every half minute."""
    one = case(record(probed_at=at(0)), after_s=5)
    want_probe(one)
    want_probe(one)
    assert one.record.probe_from == at(30)
    assert purpose(one.record, 29) is None
    assert purpose(one.record, 30) == "suspicion"


def test_the_second_suite_does_not_wait_for_the_gap() -> None:
    """Two in a row decide, so the second is asked for right away."""
    one = case(record(probed_at=at(0)), after_s=5)
    want_probe(one)
    want_second_probe(one)
    assert one.record.probe_from == at(7)
    assert purpose(one.record, 7) == "suspicion"


def test_what_is_asked_already_is_not_wanted_again() -> None:
    """The answer that is on its way will do."""
    one = case(asked(), after_s=5)
    want_probe(one)
    assert one.record.probe_from is None


def test_a_new_ticket_starts_the_count_anew() -> None:
    """The instance goes on serving meanwhile."""
    one = case(record(probed_at=at(-400), probe_from=at(-1)))
    schedule_probe(one)
    after = one.decision().record
    assert (after.probed_at, after.probe_from, after.ticket_until) == (at(0), None, at(120))
    assert after.serving
    assert after.weight == 1
    assert one.decision().routing_changed
