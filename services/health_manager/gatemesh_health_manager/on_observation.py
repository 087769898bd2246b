"""What the executor's observations do: number lives, notice exits and unplanned starts."""

from gatemesh_common.messages import InstanceObserved, InstanceState
from gatemesh_health_manager.case import Case
from gatemesh_health_manager.observing import observe_exit, observe_restart
from gatemesh_health_manager.record import Condition
from gatemesh_health_manager.states import UNATTENDED, Trigger

S = InstanceState
UNKNOWN_VERSION = "unknown"


def on_observation(case: Case, seen: InstanceObserved) -> None:
    """Take over what is seen; one that is older than the last changes nothing."""
    record = case.record
    if not case.is_news(seen.timestamp):
        return
    case.change(base_url=seen.base_url, pool=seen.pool)
    note_version(case, seen.model_version)
    if seen.running and (seen.life_id != record.life_id or record.incarnation == 0):
        on_new_life(case, seen)
    elif seen.running:
        on_same_life(case)
    elif record.running or record.incarnation == 0:
        on_exit(case)


def note_version(case: Case, version: str) -> None:
    """Note which model version runs, and which ran before; a roll-back is no new version."""
    record = case.record
    if version == record.model_version:
        return
    known = UNKNOWN_VERSION not in (version, record.model_version)
    went_back = record.rolled_back_at is not None and version == record.former_version
    if known and not went_back:
        case.change(former_version=record.model_version, version_since=case.now)
    else:
        case.change(former_version=None, version_since=None)
    case.change(model_version=version)


def on_new_life(case: Case, seen: InstanceObserved) -> None:
    """Number the life; probes decide about it, whoever started it."""
    case.new_life(seen.life_id)
    if case.record.state is S.STARTING:
        enter_first_probation(case)
    elif case.record.state not in UNATTENDED:
        on_unplanned_start(case)


def on_unplanned_start(case: Case) -> None:
    """Treat a restart by the backend like one of ours: budget, probation, incident."""
    if not case.acts:
        observe_restart(case)
        enter_first_probation(case)
        return
    case.go_on(Condition.EXIT, "restarted by itself")
    case.move(Trigger.RELIVED)
    if case.spend_restart():
        enter_first_probation(case)
    else:
        case.give_up("restarts by itself too often")


def enter_first_probation(case: Case) -> None:
    """Probe a life that may still be starting."""
    timeout_s = case.policy.restart.start_timeout_s + case.policy.probation.timeout_s
    case.enter_probation(Trigger.OBSERVED, timeout_s)


def on_same_life(case: Case) -> None:
    """Know again that it runs; a life that only a report has told of is probed now."""
    case.change(running=True)
    if case.record.state is S.STARTING:
        enter_first_probation(case)


def on_exit(case: Case) -> None:
    """Take an instance whose process has left out of rotation and have it started again."""
    case.change(running=False)
    if case.record.state is S.STARTING:
        if case.record.due_at is None:
            case.change(due_at=case.after(case.policy.restart.start_timeout_s))
    elif case.record.state not in UNATTENDED and not case.acts:
        observe_exit(case)
    elif case.record.state is S.EJECTED and case.is_to_be_replaced():
        case.replace_from("exited by itself")
    elif case.record.state is S.EJECTED and case.is_to_stay_away():
        case.stay_away("exited by itself")
    elif case.record.state not in UNATTENDED:
        case.restart_from(Trigger.EXITED, Condition.EXIT, "exited by itself")
