"""The state table: which trigger leads an instance from one state to the next."""

from enum import StrEnum

from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import InstanceState


class Trigger(StrEnum):
    """What makes an instance change its state."""

    OBSERVED = "observed"
    """A life of a starting instance runs."""
    OVERDUE = "overdue"
    """A stopped instance did not come up by itself."""
    DOUBTED = "doubted"
    CLEARED = "cleared"
    CONDEMNED = "condemned"
    """Condition A or C, or an operator: drain it."""
    PROVEN = "proven"
    """Condition B or D, a repair, or an operator: out at once."""
    FLAPPED = "flapped"
    """Came back and was taken out again too often: a person must look."""
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    REPAIRED = "repaired"
    """Repaired in place."""
    DISTRUSTED = "distrusted"
    """Its weights are not trusted any more: pull them anew."""
    ROLLED_BACK = "rolled_back"
    """Its model version is to be rolled back: start anew on the one before."""
    NOT_OFFERED = "not_offered"
    """The executor replaces nothing: restart it."""
    SPARED = "spared"
    """Its life was kept: the fleet brake did, or it could not be rolled back."""
    DRAINED = "drained"
    STOPPED = "stopped"
    """Out, and meant to stay away."""
    STARTED = "started"
    RETRIED = "retried"
    """The start failed and the restart budget allows another."""
    PROBES_PASSED = "probes_passed"
    PROBES_FAILED = "probes_failed"
    LET_THROUGH = "let_through"
    """Its pool is in observe mode: it serves, whatever probes would say."""
    LEFT = "left"
    """The process left by itself in observe mode: whoever runs it starts it."""
    EXITED = "exited"
    RELIVED = "relived"
    """A new life runs that nobody here asked for."""
    GAVE_UP = "gave_up"
    """The restart budget is spent, or the incident lasts too long."""
    WITHDRAWN = "withdrawn"
    """An operator quarantined it."""
    RELEASED = "released"
    """An operator released a running instance."""
    REVIVED = "revived"
    """An operator released a stopped instance, or had a quarantined one restarted."""


S = InstanceState
T = Trigger

TRANSITIONS: dict[tuple[InstanceState, Trigger], InstanceState] = {
    (S.STARTING, T.OBSERVED): S.PROBATION,
    (S.STARTING, T.OVERDUE): S.RESTARTING,
    (S.STARTING, T.GAVE_UP): S.QUARANTINED,
    (S.STARTING, T.WITHDRAWN): S.QUARANTINED,
    (S.PROBATION, T.PROBES_PASSED): S.HEALTHY,
    (S.PROBATION, T.PROBES_FAILED): S.RESTARTING,
    (S.PROBATION, T.LET_THROUGH): S.HEALTHY,
    (S.PROBATION, T.LEFT): S.STARTING,
    (S.PROBATION, T.DISTRUSTED): S.REPLACING,
    (S.PROBATION, T.EXITED): S.RESTARTING,
    (S.PROBATION, T.RELIVED): S.STARTING,
    (S.PROBATION, T.CONDEMNED): S.DRAINING,
    (S.PROBATION, T.STOPPED): S.QUARANTINED,
    (S.PROBATION, T.GAVE_UP): S.QUARANTINED,
    (S.PROBATION, T.ROLLED_BACK): S.RESTARTING,
    (S.PROBATION, T.WITHDRAWN): S.QUARANTINED,
    (S.HEALTHY, T.DOUBTED): S.SUSPECT,
    (S.HEALTHY, T.CONDEMNED): S.DRAINING,
    (S.HEALTHY, T.PROVEN): S.EJECTED,
    (S.HEALTHY, T.EXITED): S.RESTARTING,
    (S.HEALTHY, T.LEFT): S.STARTING,
    (S.HEALTHY, T.RELIVED): S.STARTING,
    (S.HEALTHY, T.FLAPPED): S.QUARANTINED,
    (S.HEALTHY, T.WITHDRAWN): S.QUARANTINED,
    (S.SUSPECT, T.CLEARED): S.HEALTHY,
    (S.SUSPECT, T.CONDEMNED): S.DRAINING,
    (S.SUSPECT, T.PROVEN): S.EJECTED,
    (S.SUSPECT, T.EXITED): S.RESTARTING,
    (S.SUSPECT, T.LEFT): S.STARTING,
    (S.SUSPECT, T.RELIVED): S.STARTING,
    (S.SUSPECT, T.FLAPPED): S.QUARANTINED,
    (S.SUSPECT, T.WITHDRAWN): S.QUARANTINED,
    (S.DRAINING, T.DRAINED): S.RESTARTING,
    (S.DRAINING, T.STOPPED): S.QUARANTINED,
    (S.DRAINING, T.DISTRUSTED): S.REPLACING,
    (S.DRAINING, T.SPARED): S.PROBATION,
    (S.DRAINING, T.GAVE_UP): S.QUARANTINED,
    (S.DRAINING, T.ROLLED_BACK): S.RESTARTING,
    (S.DRAINING, T.WITHDRAWN): S.QUARANTINED,
    (S.EJECTED, T.CONFIRMED): S.RESTARTING,
    (S.EJECTED, T.REFUTED): S.PROBATION,
    (S.EJECTED, T.REPAIRED): S.PROBATION,
    (S.EJECTED, T.SPARED): S.PROBATION,
    (S.EJECTED, T.DISTRUSTED): S.REPLACING,
    (S.EJECTED, T.EXITED): S.RESTARTING,
    (S.EJECTED, T.LEFT): S.STARTING,
    (S.EJECTED, T.RELIVED): S.STARTING,
    (S.EJECTED, T.CONDEMNED): S.DRAINING,
    (S.EJECTED, T.STOPPED): S.QUARANTINED,
    (S.EJECTED, T.GAVE_UP): S.QUARANTINED,
    (S.EJECTED, T.ROLLED_BACK): S.RESTARTING,
    (S.EJECTED, T.WITHDRAWN): S.QUARANTINED,
    (S.RESTARTING, T.STARTED): S.PROBATION,
    (S.RESTARTING, T.SPARED): S.PROBATION,
    (S.RESTARTING, T.ROLLED_BACK): S.RESTARTING,
    (S.RESTARTING, T.RETRIED): S.RESTARTING,
    (S.RESTARTING, T.GAVE_UP): S.QUARANTINED,
    (S.RESTARTING, T.WITHDRAWN): S.QUARANTINED,
    (S.REPLACING, T.STARTED): S.PROBATION,
    (S.REPLACING, T.SPARED): S.PROBATION,
    (S.REPLACING, T.RETRIED): S.REPLACING,
    (S.REPLACING, T.NOT_OFFERED): S.RESTARTING,
    (S.REPLACING, T.GAVE_UP): S.QUARANTINED,
    (S.REPLACING, T.ROLLED_BACK): S.RESTARTING,
    (S.REPLACING, T.WITHDRAWN): S.QUARANTINED,
    (S.QUARANTINED, T.RELEASED): S.PROBATION,
    (S.QUARANTINED, T.REVIVED): S.RESTARTING,
    (S.QUARANTINED, T.ROLLED_BACK): S.RESTARTING,
    (S.QUARANTINED, T.DISTRUSTED): S.REPLACING,
    (S.QUARANTINED, T.CONDEMNED): S.DRAINING,
}

SERVING = frozenset({S.HEALTHY, S.SUSPECT})
"""States in which an instance gets requests of clients."""


UNATTENDED = frozenset({S.DRAINING, S.RESTARTING, S.REPLACING, S.QUARANTINED})
"""States in which lives may end and begin without a meaning of their own."""


class IllegalTransitionError(GatemeshError):
    """A trigger that the state table does not allow in this state."""

    def __init__(self, state: InstanceState, trigger: Trigger) -> None:
        super().__init__(f"{trigger} while {state} is not in the state table")
        self.state = state
        self.trigger = trigger


def next_state(state: InstanceState, trigger: Trigger) -> InstanceState:
    """Return the state after a trigger.

    Raises:
        IllegalTransitionError: the table has no such pair.
    """
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise IllegalTransitionError(state, trigger) from None
