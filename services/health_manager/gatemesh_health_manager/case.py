"""One decision in the making: collects what an event changes, and keeps the promises.

Whatever moves an instance goes through here, so that these hold everywhere: states change by the
table only, at most one command is in flight, every episode out of rotation has one incident.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from gatemesh_common.messages import (
    Action,
    ProbeTicket,
    ReportOutcome,
    derived_id,
)
from gatemesh_common.trace import derived
from gatemesh_health_manager.fleet_brake import why_braked
from gatemesh_health_manager.ordering import ENDS_OR_CHANGES_A_LIFE, NO_LIFE, order_for
from gatemesh_health_manager.playbooks import RESTART, Plan
from gatemesh_health_manager.policy import PoolPolicy
from gatemesh_health_manager.record import (
    CommandEnd,
    CommandOrder,
    Condition,
    Decision,
    Flight,
    Incident,
    IncidentStatus,
    InstanceRecord,
    PoolFacts,
    Transition,
)
from gatemesh_health_manager.routing import is_routing_changed
from gatemesh_health_manager.score import score_of, weight_of
from gatemesh_health_manager.states import SERVING, Trigger, next_state
from gatemesh_health_manager.streaks import NO_STREAKS

CLOSED_TICKETS = 8
"""How many closed tickets are remembered: agents answer within seconds of each other."""


class Case:
    """What one event does to one instance; `decision` closes it."""

    def __init__(
        self,
        record: InstanceRecord,
        pool: PoolFacts,
        policy: PoolPolicy,
        now: datetime,
        cause: str,
        *,
        traceparent: str | None = None,
    ) -> None:
        self.before = record
        self.record = record
        self.pool = pool
        self.policy = policy
        self.now = now
        self.cause = cause
        """Id of the event; ids made here derive from it, so that a repetition repeats them."""
        self.traceparent = traceparent
        """The W3C trace of the event; it decides nothing and goes along with what is decided."""
        self.refusal: str | None = None
        self._brake: str | None = None
        self._transitions: list[Transition] = []
        self._incidents: dict[str, Incident] = {}
        self._orders: list[CommandOrder] = []
        self._ends: list[CommandEnd] = []

    def change(self, **fields: Any) -> None:
        """Set fields of the record; most events about a healthy instance change none."""
        record = self.record
        for name, value in fields.items():
            if getattr(record, name) is not value:
                self.record = record.having(**fields)
                return

    def after(self, seconds: float) -> datetime:
        """Return the moment some seconds from now."""
        return self.now + timedelta(seconds=seconds)

    def is_news(self, seen_at: datetime) -> bool:
        """Note a look of the executor at the instance; False when a later one is known."""
        last, at = self.record.observed_at, min(seen_at, self.now)
        # A clock that was set back leaves moments in the future, which must not deafen us.
        if last is not None and at <= last <= self.now:
            return False
        self.change(observed_at=at)
        return True

    @property
    def score(self) -> float:
        """The score now."""
        return score_of(self.record, self.policy.score, self.now)

    def move(self, trigger: Trigger) -> None:
        """Go to the next state; what the old one waited for is over."""
        before, after = self.record.state, next_state(self.record.state, trigger)
        self.change(state=after, state_since=self.now)
        if not {before, after} <= SERVING:
            self.close_ticket()
            self.change(due_at=None, wanted=None, wanted_from=None)
            self.change(probe_from=None, shift_until=None)
        incident_id = self.record.incident.incident_id if self.record.incident else None
        self._transitions.append(
            Transition(before, after, trigger, self.record.incarnation, incident_id, self.score)
        )

    def give_ticket(self, purpose: Literal["confirm", "probation"], timeout_s: float) -> None:
        """Ask the agents for the probe suite, and wait for it no longer than the time-out."""
        self.close_ticket()
        self.change(ticket=self._ticket(purpose), due_at=self.after(timeout_s))

    def ask_while_serving(self, purpose: Literal["routine", "suspicion"]) -> None:
        """Ask the agents for the probe suite; the instance goes on serving meanwhile."""
        until = self.after(self.policy.probes.answer_s)
        self.change(
            ticket=self._ticket(purpose), ticket_until=until, probed_at=self.now, probe_from=None
        )

    def _ticket(self, purpose: str) -> ProbeTicket:
        ticket_id = derived_id(
            "ticket", self.record.instance_id, self.cause, purpose, self.now.isoformat()
        )
        return ProbeTicket(ticket_id=ticket_id, purpose=purpose)

    def close_ticket(self) -> None:
        """Wait for no answer any more; those that still come count for nothing."""
        ticket = self.record.ticket
        if ticket is not None:
            closed = (*self.record.closed_tickets, ticket.ticket_id)[-CLOSED_TICKETS:]
            self.change(ticket=None, ticket_until=None, closed_tickets=closed)

    def answer_evidence(self) -> None:
        """Let what is known against the instance so far count for nothing."""
        self.change(evidence_since=self.now, streaks=NO_STREAKS)

    # Incidents

    def open_incident(
        self,
        condition: Condition,
        reason: str,
        plan: Plan = RESTART,
        own_name: str = "",
    ) -> None:
        """Start an incident, or let the open one go on under a new heading."""
        old = self.record.incident
        incident_id = (
            old.incident_id
            if old
            else derived_id(
                "incident", self.record.instance_id, str(self.record.incarnation), self.cause
            )
        )
        self._put_incident(
            Incident(
                incident_id=incident_id,
                incarnation=old.incarnation if old else self.record.incarnation,
                condition=condition,
                status="open",
                opened_at=old.opened_at if old else self.now,
                cause=reason,
                reason=reason,
                playbook=plan.name,
                steps=plan.steps,
                own_name=own_name,
                core_dump=old.core_dump if old else "",
                traceparent=(old or self).traceparent or derived("incident", incident_id),
            )
        )

    def set_incident(self, status: IncidentStatus, reason: str | None = None) -> None:
        """Change the status of the open incident, if there is one; every end closes it for good."""
        incident = self.record.incident
        if incident is None:
            return
        reason = incident.reason if reason is None else reason
        ended = status not in ("open", "held")
        self._put_incident(
            replace(incident, status=status, reason=reason, ended_at=self.now if ended else None)
        )
        if ended:
            self.change(incident=None, shift_until=None)

    def note_core_dump(self, folder: str) -> None:
        """Keep with the open incident where the core dump of its life lies."""
        if self.record.incident is not None and folder:
            self._put_incident(replace(self.record.incident, core_dump=folder))

    def _put_incident(self, incident: Incident) -> None:
        self._incidents[incident.incident_id] = incident
        self.change(incident=incident)

    def accuse(self, condition: Condition, reason: str, plan: Plan, own_name: str = "") -> None:
        """Open an incident by a condition; where most of the pool is accused, the brake falls."""
        self.open_incident(condition, reason, plan, own_name)
        if plan.only_tells:
            return
        self.change(accused_at=self.now)
        if self.acts:
            self._brake = self.why_brake_falls()

    def only_observe(self, would: str) -> None:
        """Have the open incident say what would be done about it, and nothing be done."""
        incident = self.record.incident
        if incident is not None:
            self.change(shift_until=None)
            self._put_incident(replace(incident, status="held", would=would))

    # Brakes

    @property
    def asked(self) -> bool:
        """True while an operator's request is being carried out."""
        incident = self.record.incident
        return incident is not None and incident.condition is Condition.OPERATOR

    @property
    def acts(self) -> bool:
        """False in observe mode, but for what an operator has asked for."""
        return self.policy.mode == "act" or self.asked

    def why_brake_falls(self) -> str | None:
        """Return why the fleet brake falls with an accusation of this instance; None if not."""
        if self.pool.braked:
            return None
        accused = self.pool.accused | {self.record.instance_id}
        return why_braked(len(accused), self.pool.total, self.policy.fleet_brake)

    @property
    def braked(self) -> bool:
        """True while the fleet brake is on, from this very event on too."""
        return self.pool.braked or self._brake is not None

    @property
    def frozen(self) -> bool:
        """True while nothing may be done but what an operator asks for."""
        return self.pool.paused or self.braked

    def why_not_out(self) -> str | None:
        """Return what forbids taking this instance out of rotation now; None when it may go."""
        if not self.record.has_traffic:
            return None
        budget = self.policy.ejection
        left, out = self.pool.serving - 1, self.pool.total - self.pool.serving + 1
        if left < budget.min_in_rotation:
            return f"only {left} would be left, min_in_rotation is {budget.min_in_rotation}"
        if out > budget.max_out_share * self.pool.total:
            return (
                f"{out} of {self.pool.total} would be out, max_out_share is {budget.max_out_share}"
            )
        return None

    def restart(self) -> None:
        """Want the target life restarted, within the budget; past it, give up.

        Where its model version is to be rolled back, that comes first, once, on a fresh budget:
        what the new version has used up is not held against the former one.
        """
        if self.is_to_be_rolled_back():
            self.change(rolled_back_at=self.now, restarts=(), outs=())
            self._start_anew(Action.ROLL_BACK)
        else:
            self._start_anew(Action.RESTART)

    def replace(self) -> None:
        """Want it started from weights pulled anew, within the same budget."""
        self._start_anew(Action.REPLACE)

    def _start_anew(self, action: Action) -> None:
        rule = self.policy.restart
        if not self.spend_restart():
            self.give_up(f"{rule.restarts} restarts within {rule.restart_window_s:g} s are used up")
            return
        used = len(self.record.restarts) - 1
        delay_s = rule.back_off_s[min(used, len(rule.back_off_s) - 1)]
        # What comes up by itself while it waits is not what it ends.
        self.change(target_life=self.record.target_life or self.record.life_id or NO_LIFE)
        self.want(action, self.after(delay_s))

    def spend_restart(self) -> bool:
        """Count one more life against the restart budget; False when none is left."""
        rule = self.policy.restart
        since = self.after(-rule.restart_window_s)
        # Those of a clock that was ahead are no longer known to be within the window.
        recent = tuple(moment for moment in self.record.restarts if since < moment <= self.now)
        allowed = len(recent) < rule.restarts
        self.change(restarts=(*recent, self.now) if allowed else recent)
        return allowed

    def count_out(self) -> bool:
        """Count one more time out by a condition; False when they are too many for a repair."""
        rule = self.policy.flap
        since = self.after(-rule.window_s)
        recent = (*(at for at in self.record.outs if since < at <= self.now), self.now)
        self.change(outs=recent[-rule.out_count :])
        return not rule.enabled or len(recent) < rule.out_count

    def stop_flapping(self) -> None:
        """Take out and leave to a person; the process goes on, so that he can look at it."""
        rule = self.policy.flap
        self.move(Trigger.FLAPPED)
        self.set_incident(
            "quarantined", f"taken out {rule.out_count} times within {rule.window_s:g} s"
        )
        if self.record.running:
            self.want(Action.EJECT)

    def give_up(self, reason: str) -> None:
        """Leave the instance to a person."""
        self.move(Trigger.GAVE_UP)
        self.set_incident("quarantined", reason)

    # Commands

    def want(self, action: Action, not_before: datetime | None = None) -> None:
        """Have a command sent once its time has come and no other is in flight."""
        self.change(wanted=action, wanted_from=not_before or self.now)

    def end_flight(self, outcome: ReportOutcome | Literal["expired"], reason: str = "") -> None:
        """Close the command in flight."""
        if self.record.flight is not None:
            self._ends.append(CommandEnd(self.record.flight.command_id, outcome, reason))
            self.change(flight=None)

    def decision(self) -> Decision:
        """Send what is wanted and return everything that changed."""
        weight = self._weight()
        if weight != self.record.weight:
            self.change(weight=weight)
        changed = is_routing_changed(self.before, self.record)
        wanted = self.record.due_by(self.now)
        if wanted is not None and self._may_send(wanted):
            self._issue(wanted, routing_changed=changed)
        return Decision(
            record=self.record,
            transitions=tuple(self._transitions),
            incidents=tuple(self._incidents.values()),
            commands=tuple(self._orders),
            ends=tuple(self._ends),
            refusal=self.refusal,
            brake=self._brake,
            routing_changed=changed,
        )

    def _weight(self) -> float:
        weight = weight_of(self.record, self.policy, self.now)
        if self.record.shift_until is None:
            return weight
        return min(weight, self.policy.condition_c.shift_weight)

    def _may_send(self, action: Action) -> bool:
        """True unless a brake spares the process, and no operator has asked for the action."""
        if self.asked or action not in ENDS_OR_CHANGES_A_LIFE:
            return True
        incident = self.record.incident
        rolls_back = incident is not None and incident.condition is Condition.ROLL_BACK
        # Lives are spared; what has stopped is started again, or the pool would shrink.
        spared = (self.braked and not rolls_back) or not self.acts
        return not self.pool.paused and not (spared and self.record.running)

    def _issue(self, action: Action, *, routing_changed: bool) -> None:
        self.change(fence=self.record.fence + 1)
        version = self.pool.routing_version + int(routing_changed)
        incident = self.record.incident or self.before.incident
        trace = incident.traceparent if incident else self.traceparent
        order = order_for(action, self.record, self.policy, version, self.now, traceparent=trace)
        self._orders.append(order)
        flight = Flight(order.command.message_id, action, order.due_at)
        self.change(wanted=None, wanted_from=None, flight=flight)

    # Ways that several events share

    def new_life(self, life_id: str | None) -> None:
        """Number a life that was not known before; it starts with a clean record."""
        self.change(
            incarnation=self.record.incarnation + 1,
            life_id=life_id,
            running=True,
            penalty=0.0,
            penalty_at=self.now,
            evidence_since=None,
            refuted_at=None,
            streaks=NO_STREAKS,
            repaired_at=None,
        )

    def enter_probation(self, trigger: Trigger, timeout_s: float | None = None) -> None:
        """Let probes decide about the present life."""
        self.move(trigger)
        self.give_ticket("probation", timeout_s or self.policy.probation.timeout_s)

    def condemn(self, trigger: Trigger = Trigger.CONDEMNED) -> None:
        """Drain the present life."""
        self.change(target_life=self.record.life_id)
        self.move(trigger)
        self.want(Action.DRAIN)

    def eject(self) -> None:
        """Take out at once; have it confirmed, unless a proof was refuted lately."""
        rule = self.policy.condition_b
        refuted_at = self.record.refuted_at
        self.change(target_life=self.record.life_id)
        self.move(Trigger.PROVEN)
        if refuted_at and self.now <= refuted_at + timedelta(seconds=rule.reconfirm_window_s):
            self.mend("proven again after a refutation")
        else:
            self.want(Action.EJECT)
            self.give_ticket("confirm", rule.confirm_timeout_s)

    def take_out(self) -> None:
        """Take out at once, with nothing left to confirm; once it is out, it is mended."""
        self.change(target_life=self.record.life_id)
        self.move(Trigger.PROVEN)
        self.want(Action.EJECT)

    def leave(self) -> None:
        """Take out to be repaired in place where that is tried, else drain."""
        if self.may_repair():
            self.take_out()
        else:
            self.condemn()

    def may_repair(self) -> bool:
        """True when repair in place is the next thing to try: once in a life."""
        rule, incident = self.policy.repair, self.record.incident
        if incident is None or not self.record.running or self.record.repaired_at is not None:
            return False
        by_rule = rule.enabled and incident.condition in rule.conditions
        return by_rule or "repair" in incident.plan

    def mend(self, reason: str) -> None:
        """Repair, replace or restart an ejected instance, whatever comes next for it."""
        self.set_incident("open", reason)
        if self.may_repair():
            self.close_ticket()
            self.change(due_at=None)
            self.want(Action.REPAIR)
        elif self.is_to_be_replaced():
            self.replace_from(reason)
        elif self.is_to_stay_away():
            self.stay_away(reason)
        else:
            self.move(Trigger.CONFIRMED)
            self.restart()

    def is_to_be_replaced(self) -> bool:
        """True when the open incident distrusts the weights."""
        return self.record.has_step("replace")

    def is_to_stay_away(self) -> bool:
        """True when the open incident leaves the instance to a person."""
        return self.record.has_step("stop")

    def stay_away(self, reason: str) -> None:
        """Leave the instance to a person, as the playbook says."""
        self.move(Trigger.STOPPED)
        self.set_incident("quarantined", reason)

    def replace_from(self, reason: str) -> None:
        """Replace the present life; the open incident goes on."""
        self.change(target_life=self.record.life_id)
        self.set_incident("open", reason)
        self.move(Trigger.DISTRUSTED)
        self.replace()

    def roll_back(self) -> None:
        """Have the present life end, and the model version before it started."""
        self.change(target_life=self.record.life_id)
        self.move(Trigger.ROLLED_BACK)
        self.restart()

    def is_to_be_rolled_back(self) -> bool:
        """True where the open incident is about the model version, and nothing was tried yet."""
        incident, at = self.record.incident, self.record.rolled_back_at
        return (
            incident is not None and incident.rolls_back and (at is None or at < incident.opened_at)
        )

    def restart_from(self, trigger: Trigger, condition: Condition, reason: str) -> None:
        """Restart the present life for a cause of its own; the open incident goes on."""
        self.change(target_life=self.record.life_id)
        self.go_on(condition, reason)
        self.move(trigger)
        self.restart()

    def go_on(self, condition: Condition, reason: str) -> None:
        """Have the open incident go on; where none is, or one that only tells, open another."""
        incident = self.record.incident
        if incident is None or incident.only_tells:
            self.open_incident(condition, reason)
        else:
            self.set_incident("open", reason)
