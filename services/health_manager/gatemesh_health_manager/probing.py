"""When an instance in rotation is asked for the probe suite; it goes on serving meanwhile."""

from datetime import datetime, timedelta

from gatemesh_health_manager.case import Case


def schedule_probe(case: Case, requests: int = 0) -> None:
    """Void a ticket that nobody answered; give one that is due and that the brakes allow."""
    record = case.record
    if not record.serving:
        return
    if record.ticket is not None and is_void(case):
        case.close_ticket()
    if case.record.ticket is not None or not case.policy.probes.enabled or is_crowded(case):
        return
    if record.probe_from is not None and case.now >= record.probe_from:
        case.ask_while_serving("suspicion")
    elif is_routine_due(case, requests):
        case.ask_while_serving("routine")


def is_void(case: Case) -> bool:
    """True when nobody has answered in time, which is no evidence."""
    until = case.record.ticket_until
    # A moment further away than the time-out is of a clock that was set back since.
    return until is None or not case.now < until <= case.after(case.policy.probes.answer_s)


def is_crowded(case: Case) -> bool:
    """True when as many of the pool are being probed as the rules allow."""
    pool, share = case.pool, case.policy.probes.max_parallel_share
    return pool.probing >= max(1, int(share * pool.serving))


def is_routine_due(case: Case, requests: int) -> bool:
    """True after enough requests, or enough time, since the last probe."""
    rule = case.policy.probes
    since = case.record.probed_at or case.record.state_since
    age = case.now - since
    enough = requests >= rule.every_requests and age >= timedelta(seconds=rule.min_gap_s)
    # A moment in the future is of a clock that was set back since.
    return enough or not timedelta() <= age < timedelta(seconds=rule.every_s)


def want_probe(case: Case) -> None:
    """Want a probe out of turn, as soon as the last one is long enough ago."""
    rule, last = case.policy.probes, case.record.probed_at
    earliest = last + timedelta(seconds=rule.min_gap_s) if last is not None else case.now
    _want_from(case, max(case.now, earliest))


def want_second_probe(case: Case) -> None:
    """Want another suite right after a failed one: two in a row decide."""
    _want_from(case, case.after(case.policy.probes.retry_after_s))


def _want_from(case: Case, moment: datetime) -> None:
    known = case.record.probe_from
    if case.record.serving and case.record.ticket is None:
        case.change(probe_from=moment if known is None else min(known, moment))
