"""What follows the end of a command."""

from dataclasses import replace

import pytest

from gatemesh_common.messages import Action, InstanceState, ProbeTicket, ReportOutcome
from gatemesh_health_manager.on_report import on_overdue_command, on_report
from gatemesh_health_manager.record import Decision, Incident, InstanceRecord

from .samples import NOW, at, case, flying, incident, record, report, ticket

S = InstanceState
DRAINING = flying(record(S.DRAINING, incident=incident(), target_life="life-1"), Action.DRAIN)
RESTARTING = flying(record(S.RESTARTING, incident=incident(), target_life="life-1"), Action.RESTART)


def reported(
    about: InstanceRecord,
    action: Action = Action.DRAIN,
    outcome: ReportOutcome = ReportOutcome.SUCCEEDED,
) -> Decision:
    """Return the decision about one report."""
    one = case(about, after_s=1)
    on_report(one, report(action, outcome))
    return one.decision()


def actions(decision: Decision) -> list[Action]:
    """Return what is to be done."""
    return [order.command.action for order in decision.commands]


@pytest.mark.parametrize("outcome", ReportOutcome)
def test_any_end_of_a_drain_leads_to_a_restart(outcome: ReportOutcome) -> None:
    """A drain that failed is followed by a stop by force."""
    decision = reported(DRAINING, Action.DRAIN, outcome)
    assert decision.record.state is S.RESTARTING
    assert actions(decision) == [Action.RESTART]
    assert decision.ends[0].outcome is outcome


def test_a_drain_on_request_ends_in_quarantine() -> None:
    """Stopped, until a person releases it."""
    asked = flying(record(S.DRAINING, incident=incident(playbook="stop")), Action.DRAIN)
    decision = reported(asked)
    assert decision.record.state is S.QUARANTINED
    assert decision.commands == ()
    assert decision.record.incident is None


def test_a_new_life_goes_to_probation() -> None:
    """Nobody gets traffic without probes."""
    one = case(RESTARTING, after_s=1)
    on_report(one, report(Action.RESTART, life_id="life-2"))
    after = one.decision().record
    assert (after.state, after.incarnation, after.life_id) == (S.PROBATION, 2, "life-2")
    assert after.ticket is not None
    assert after.flight is None


@pytest.mark.parametrize(
    ("outcome", "life_id"),
    [
        pytest.param(ReportOutcome.FAILED, None, id="failed"),
        pytest.param(ReportOutcome.REFUSED, None, id="refused"),
        pytest.param(ReportOutcome.SUCCEEDED, "life-1", id="the-old-life-runs"),
        pytest.param(ReportOutcome.SUCCEEDED, None, id="no-life"),
    ],
)
def test_a_restart_without_a_new_life_is_tried_again(
    outcome: ReportOutcome, life_id: str | None
) -> None:
    """Within the budget, with back-off."""
    one = case(RESTARTING, after_s=1)
    on_report(one, report(Action.RESTART, outcome, life_id=life_id))
    decision = one.decision()
    assert decision.record.state is S.RESTARTING
    assert actions(decision) == [Action.RESTART]
    assert decision.commands[0].command.life_id == "life-1"


def replacing(outcome: ReportOutcome, reason: str = "", **fields: object) -> Decision:
    """Return the decision about the report of a replacement."""
    about = record(S.REPLACING, incident=incident(playbook="replace"), target_life="life-1")
    one = case(flying(about, Action.REPLACE), after_s=1)
    on_report(one, report(Action.REPLACE, outcome, reason=reason, **fields))
    return one.decision()


def test_a_replacement_goes_to_probation() -> None:
    """Its weights are proven by checksums, its answers by probes."""
    decision = replacing(ReportOutcome.SUCCEEDED, life_id="life-2")
    assert (decision.record.state, decision.record.incarnation) == (S.PROBATION, 2)


@pytest.mark.parametrize(
    "reason",
    ["weights_refused: nan in layer 3", "pull_failed: exit code 1", "start_timeout: 300 s"],
)
def test_a_replacement_that_failed_is_tried_again(reason: str) -> None:
    """And the history says why."""
    decision = replacing(ReportOutcome.FAILED, reason)
    assert decision.record.state is S.REPLACING
    assert actions(decision) == [Action.REPLACE]
    assert decision.incidents[0].reason == f"replacement failed: {reason}"


def test_an_executor_that_cannot_replace_restarts() -> None:
    """One of an earlier release; probes decide about the life."""
    decision = replacing(ReportOutcome.REFUSED, "wrong_action")
    assert decision.record.state is S.RESTARTING
    assert actions(decision) == [Action.RESTART]


def test_a_replacement_is_repeated_while_the_executor_is_silent() -> None:
    """Nobody tried, so it does not count."""
    about = record(
        S.REPLACING,
        incident=incident(playbook="replace"),
        observed_at=at(-99),
        restarts=(NOW,),
    )
    one = case(flying(about, Action.REPLACE), after_s=31)
    on_overdue_command(one)
    decision = one.decision()
    assert actions(decision) == [Action.REPLACE]
    assert decision.record.restarts == (NOW,)


def test_a_new_life_that_is_not_ready_is_the_next_one_to_end() -> None:
    """The command that follows is about the life that runs."""
    one = case(RESTARTING, after_s=1)
    on_report(one, report(Action.RESTART, ReportOutcome.FAILED, life_id="life-2"))
    [order] = one.decision().commands
    assert order.command.life_id == "life-2"


def test_restarts_that_fail_end_in_quarantine() -> None:
    """The budget is finite."""
    spent = flying(
        record(S.RESTARTING, incident=incident(), restarts=(NOW, NOW, NOW)), Action.RESTART
    )
    one = case(spent, after_s=1)
    on_report(one, report(Action.RESTART, ReportOutcome.FAILED))
    assert one.decision().record.state is S.QUARANTINED
    assert one.decision().incidents[-1].status == "quarantined"


def test_a_report_nobody_waits_for_only_tells_of_a_life() -> None:
    """A late report moves no state."""
    one = case(record(S.RESTARTING), after_s=1)
    on_report(one, report(Action.RESTART, life_id="life-2", command_id="another"))
    after = one.decision().record
    assert (after.state, after.incarnation) == (S.RESTARTING, 2)


def test_an_old_report_tells_nothing_of_lives() -> None:
    """What was seen later stands."""
    about = record(S.RESTARTING, observed_at=at(9), life_id="life-3")
    one = case(about, after_s=10)
    on_report(one, report(Action.RESTART, life_id="life-2", command_id="another"))
    assert one.record == about


def test_a_report_of_another_command_frees_the_way() -> None:
    """The command that was wanted meanwhile is sent."""
    waiting = flying(record(S.DRAINING, incident=incident(), wanted=Action.DRAIN), Action.READMIT)
    decision = reported(waiting, Action.READMIT)
    assert decision.record.state is S.DRAINING
    assert actions(decision) == [Action.DRAIN]


def test_a_readmission_that_failed_is_tried_later() -> None:
    """Every balancer must know."""
    decision = reported(flying(record(), Action.READMIT), Action.READMIT, ReportOutcome.FAILED)
    assert decision.record.due_at == at(31)


def overdue(about: InstanceRecord, after_s: float) -> Decision:
    """Return the decision when the report is missing."""
    one = case(about, after_s=after_s)
    on_overdue_command(one)
    return one.decision()


def test_a_drain_without_a_report_is_given_up() -> None:
    """Restart."""
    decision = overdue(DRAINING, 31)
    assert decision.record.state is S.RESTARTING
    assert decision.ends[0].outcome == "expired"


def test_a_restart_without_a_report_counts_while_the_executor_is_heard() -> None:
    """It had its chance."""
    decision = overdue(RESTARTING, 30)
    assert actions(decision) == [Action.RESTART]
    assert len(decision.record.restarts) == 1


def test_a_restart_that_nobody_read_is_repeated_and_not_counted() -> None:
    """An executor that is away for an hour does not quarantine the fleet."""
    decision = overdue(RESTARTING, 31)
    assert actions(decision) == [Action.RESTART]
    assert decision.record.restarts == ()
    assert decision.transitions == ()


def test_nothing_in_flight_is_never_overdue() -> None:
    """Harmless."""
    assert overdue(record(), 99).record == record()


def test_a_restart_report_in_quarantine_changes_no_state() -> None:
    """A person decides."""
    one = case(flying(record(S.QUARANTINED), Action.RESTART), after_s=1)
    on_report(one, report(Action.RESTART, life_id="life-2"))
    assert one.decision().record.state is S.QUARANTINED


@pytest.mark.parametrize("state", [S.HEALTHY, S.SUSPECT, S.PROBATION, S.EJECTED, S.STARTING])
def test_a_report_alone_brings_no_life_into_rotation(state: S) -> None:
    """The observation does, and it leads through probation."""
    about = record(state)
    one = case(about, after_s=1)
    on_report(one, report(Action.READMIT, life_id="life-2", command_id="another"))
    assert one.record == about


def test_a_new_life_that_has_ended_again_is_no_success() -> None:
    """The report was overtaken by the observation of the end."""
    about = flying(
        record(S.RESTARTING, incident=incident(), target_life="life-1", life_id="life-2"),
        Action.RESTART,
    )
    one = case(replace(about, running=False, observed_at=at(2)), after_s=3)
    on_report(one, report(Action.RESTART, life_id="life-2"))
    assert one.record.state is S.RESTARTING
    assert one.record.target_life == "life-2"


def test_a_drain_on_request_that_failed_says_so() -> None:
    """The history does not claim a stop that nobody saw."""
    asked = flying(record(S.DRAINING, incident=incident(playbook="stop")), Action.DRAIN)
    one = case(asked, after_s=1)
    on_report(one, report(Action.DRAIN, ReportOutcome.REFUSED, reason="expired"))
    [ended] = one.decision().incidents
    assert (ended.status, ended.reason) == ("quarantined", "not stopped: expired")


def test_the_incident_tells_of_a_drain_that_failed() -> None:
    """Requests may have reached it until the restart: nobody reads that it was isolated."""
    one = case(DRAINING, after_s=1)
    why = "balancer_unavailable: front: no answer"
    on_report(one, report(Action.DRAIN, ReportOutcome.FAILED, reason=why))
    [changed] = one.decision().incidents
    assert (changed.status, changed.reason) == ("open", f"not drained: {why}")


@pytest.mark.parametrize(
    ("state", "asked", "after"),
    [
        pytest.param(S.EJECTED, None, S.RESTARTING, id="nothing-to-confirm"),
        pytest.param(S.EJECTED, ticket("confirm"), S.EJECTED, id="while-probes-are-asked"),
        pytest.param(S.RESTARTING, None, S.RESTARTING, id="after-probes-have-confirmed"),
    ],
)
def test_the_incident_tells_of_an_ejection_that_failed(
    state: S, asked: ProbeTicket | None, after: S
) -> None:
    """The mending goes on all the same."""
    about = record(state, incident=incident(), ticket=asked, target_life="life-1")
    one = case(flying(about, Action.EJECT), after_s=1)
    on_report(one, report(Action.EJECT, ReportOutcome.FAILED, reason="balancer_refused: front"))
    [changed] = one.decision().incidents
    assert (changed.status, changed.reason) == ("open", "not taken out: balancer_refused: front")
    assert one.record.state is after


BROKE = "step_broke: start_life: Fault 10: BAD_NAME: engine-0"


def test_a_step_that_broke_counts_as_any_failed_start() -> None:
    """It is tried again within the budget, and the incident says what broke."""
    one = case(RESTARTING, after_s=1)
    on_report(one, report(Action.RESTART, ReportOutcome.FAILED, reason=BROKE))
    decision = one.decision()
    assert decision.record.state is S.RESTARTING
    assert actions(decision) == [Action.RESTART]
    assert decision.ends[0].reason == BROKE
    assert decision.incidents[-1].reason == f"restart failed: {BROKE}"


@pytest.mark.parametrize("held", [incident(status="held"), None], ids=["held", "over"])
def test_a_late_failure_changes_no_incident_that_nobody_works_on(held: Incident | None) -> None:
    """It was refuted meanwhile, or waits for room."""
    one = case(flying(record(S.SUSPECT, incident=held), Action.EJECT), after_s=1)
    on_report(one, report(Action.EJECT, ReportOutcome.FAILED, reason="balancer_refused: front"))
    assert one.decision().incidents == ()


@pytest.mark.parametrize(
    ("highest", "fence"),
    [
        pytest.param(9, 10, id="database-restored"),
        pytest.param(1, 2, id="same"),
        pytest.param(None, 2, id="untold"),
    ],
)
def test_the_next_fence_is_above_the_executors(highest: int | None, fence: int) -> None:
    """A manager with a restored database is obeyed again."""
    one = case(RESTARTING, after_s=1)
    refused = report(
        Action.RESTART, ReportOutcome.REFUSED, reason="stale_fence", highest_fence=highest
    )
    on_report(one, refused)
    [order] = one.decision().commands
    assert order.command.fence == fence
