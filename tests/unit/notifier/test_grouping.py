"""Grouping by pool and subject, rates, and what is no news."""

from tests.unit.notifier.parts import braked, state, told, verdict

from gatemesh_notifier.facts import AlertChoice, Fact, Level, alert_fact, state_fact
from gatemesh_notifier.grouping import Mailbox, Pace

PACE = Pace(gather_s=5, quiet_gather_s=60, per_min=60, burst=100)


def mailbox(pace: Pace = PACE) -> Mailbox:
    """Return a mailbox to whose owner nothing was told."""
    return Mailbox(pace, {})


def alert(**fields: object) -> Fact:
    """Return the fact of an alert."""
    fact = alert_fact(verdict(**fields), AlertChoice.FAILED)
    assert fact is not None
    return fact


def test_events_of_a_pool_become_one_message() -> None:
    """Ten engines that fall at once are one thing to a person."""
    box = mailbox()
    for number in range(10):
        assert box.put(told(instance_id=f"engine-{number}", incident_id=f"i-{number}"), number / 10)
    assert box.take(4.99) is None
    found = box.take(5)
    assert found is not None
    assert (found.pool, len(found.lines), len(found.message_ids)) == ("chat", 10, 10)
    assert box.next_s(5) is None


def test_pools_are_told_apart() -> None:
    """Each has its own people."""
    box = mailbox()
    box.put(told(), 0)
    box.put(told(pool="code", incident_id="i-2"), 1)
    pools = [found.pool for at_s in (5, 6) if (found := box.take(at_s))]
    assert pools == ["chat", "code"]


def test_the_weightiest_line_comes_first_and_names_the_level() -> None:
    """Who reads one line reads the one that matters."""
    box = mailbox()
    for fact in (alert(), told(), braked()):
        box.put(fact, 0)
    found = box.take(5)
    assert found is not None
    assert found.level is Level.PAGE
    assert [line.fact.word for line in found.lines] == ["brake_fell", "incident_open", "alert"]


def test_an_incident_that_ends_while_it_waits_is_one_quiet_line() -> None:
    """Nobody is woken up for what is over; both events are told by it."""
    box = mailbox()
    box.put(told(), 0)
    box.put(told(status="resolved"), 1)
    found = box.take(5)
    assert found is not None
    assert (found.level, len(found.lines), len(found.message_ids)) == (Level.QUIET, 1, 2)
    assert found.since_s == 0


def test_what_is_over_waits_longer_unless_something_else_goes() -> None:
    """Quiet means few messages."""
    box = Mailbox(PACE, {"incident:i-1": "incident_open"})
    box.put(told(status="resolved"), 0)
    assert box.take(59.9) is None
    box.put(told(incident_id="i-2"), 50)
    found = box.take(55)
    assert found is not None
    assert {line.fact.word for line in found.lines} == {"incident_open", "incident_resolved"}


def test_the_end_of_what_was_never_told_is_no_news() -> None:
    """A target that gets only pages must not hear that some trouble is over."""
    assert not mailbox().put(told(status="resolved"), 0)


def test_the_same_word_about_the_same_incident_is_told_once() -> None:
    """Another word is news."""
    box = mailbox()
    box.put(told(), 0)
    assert box.take(5)
    assert not box.put(told(), 6)
    assert box.put(told(status="held"), 7)
    assert box.take(12)
    assert box.put(told(), 13)


def test_what_could_not_be_delivered_is_news_again() -> None:
    """The next event about it must not be kept back."""
    box = mailbox()
    box.put(told(), 0)
    found = box.take(5)
    assert found is not None
    box.fail(found)
    assert box.put(told(), 6)


def test_alerts_of_an_accused_instance_only_go_with_more_news() -> None:
    """The incident was told; its evidence alone is no message."""
    box = mailbox()
    box.put(told(), 0)
    assert box.put(alert(), 1)
    assert box.take(5)
    assert not box.put(alert(), 6)
    assert box.put(alert(instance_id="engine-1"), 6)
    assert box.put(alert(), 7)
    box.put(told(status="resolved"), 8)
    assert box.take(11)
    assert box.put(alert(), 70)


def test_alerts_of_a_released_instance_are_told_again() -> None:
    """Its incident ended in quarantine; what is seen after the release is news."""
    box = mailbox()
    box.put(told(), 0)
    box.put(told(status="quarantined"), 1)
    assert box.take(5)
    assert not box.put(alert(), 6)
    released = state_fact(state(before="quarantined", after="restarting", trigger="released"))
    assert released is not None
    box.put(released, 7)
    assert box.take(67)
    assert box.put(alert(), 70)


def test_alerts_beside_what_could_not_be_delivered_are_told() -> None:
    """Nobody has heard of the incident that would have told them."""
    box = mailbox()
    box.put(told(), 0)
    found = box.take(5)
    assert found is not None
    box.fail(found)
    assert box.put(alert(), 6)


def test_alerts_are_counted_and_repeated_slowly() -> None:
    """While the manager is away there is no incident, and the alerts are all there is."""
    box = mailbox()
    for number in range(3):
        box.put(alert(request_id=f"r-{number}"), number)
    found = box.take(5)
    assert found is not None
    assert [line.count for line in found.lines] == [3]
    box.put(alert(), 6)
    assert box.next_s(6) == 66


def test_too_many_messages_become_larger_ones() -> None:
    """The rate holds, and nothing is dropped."""
    box = mailbox(Pace(gather_s=0, quiet_gather_s=0, per_min=1, burst=2))
    sizes = []
    for second in range(121):
        box.put(told(incident_id=f"i-{second}"), second)
        if found := box.take(second):
            sizes.append(len(found.lines))
    assert sizes == [1, 1, 59, 60]


def test_memory_is_bounded() -> None:
    """A mailbox lives for months."""
    box = mailbox(Pace(gather_s=0, quiet_gather_s=0, per_min=600, burst=100))
    for number in range(10_050):
        box.put(told(incident_id=f"i-{number}"), 0)
    assert box.take(0)
    assert box.put(told(incident_id="i-3"), 1)
    assert not box.put(told(incident_id="i-10049"), 1)
    assert box.waiting == 1
