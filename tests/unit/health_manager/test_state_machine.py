"""Random fleets, verdicts, crashes, clocks and requests: what must hold, holds after every step.

`GATEMESH_STATE_MACHINE_STEPS` sets how many steps are taken; `./mesh test --faults` takes 100,000.
"""

import os
from collections.abc import Callable
from typing import Any, ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from gatemesh_common.messages import ActionRequest, CheckLevel, InstanceState, ReportOutcome
from gatemesh_health_manager.policy import Policy, parse_policy

from .watched import WatchedWorld

STEPS = int(os.environ.get("GATEMESH_STATE_MACHINE_STEPS", "1500"))
STEPS_PER_FLEET = 50
SETTLING_S = 3 * 3600
RULES = (
    Policy(),
    parse_policy("[defaults.repair]\nenabled = true\nconditions = ['A','B','C','D']\n"),
    parse_policy("[defaults.fleet_brake]\nmin_accused = 1\nmax_accused_share = 0.3\n"),
    parse_policy("[defaults.flap]\nout_count = 2\n"),
    parse_policy("[defaults.restart]\nrestarts = 1\nback_off_s = [0, 60]\n"),
    parse_policy("[defaults.ejection]\nmin_in_rotation = 1\nmax_out_share = 1.0\n"),
)
WHICH_RULES = st.integers(0, len(RULES) - 1)
WHO = st.integers(0, 4)
OUTCOMES = st.sampled_from(["failed", "failed", "failed", "passed"])
PROMPTS = st.integers(0, 8)
ACTIONS = st.sampled_from(
    ["drain", "eject", "restart", "repair", "replace", "release", "quarantine"]
)
BACKLOGS = st.sampled_from(["skip", "replay"])
AT_REST = {InstanceState.HEALTHY, InstanceState.SUSPECT, InstanceState.QUARANTINED}


class FleetMachine(RuleBasedStateMachine):
    """One pool of one to five instances, and everything that can happen to it."""

    taken: ClassVar[int] = 0
    """Steps taken by all machines so far."""
    world: WatchedWorld

    @initialize(size=st.integers(1, 5), rules=WHICH_RULES)
    def begin(self, size: int, rules: int) -> None:
        """Bring a pool into rotation."""
        self.hours_back = 0
        self.world = WatchedWorld([f"engine-{number}" for number in range(size)], RULES[rules])
        self.world.start_up()

    def name(self, who: int) -> str:
        """Return one of the instances."""
        names = list(self.world.engines)
        return names[who % len(names)]

    # What gates and people say

    @rule(who=WHO, prompt=PROMPTS, level=st.sampled_from(["L1", "L2"]))
    def soft_failure(self, who: int, prompt: int, level: str) -> None:
        """An answer that looks wrong."""
        self.tell(who, check_level=level, prompt_fingerprint=f"p{prompt}")

    @rule(who=WHO)
    def burst(self, who: int) -> None:
        """Six failures of six prompts, each delivered three times."""
        batch = [self.world.verdict(self.name(who)) for _ in range(6)]
        self.world.deliver(batch + batch[::-1])
        self.world.deliver(batch)

    @rule(who=WHO, age=st.integers(0, 2))
    def proof(self, who: int, age: int) -> None:
        """A hard failure, perhaps of an earlier life."""
        record = self.world.fleet.records[self.name(who)]
        life = max(0, record.incarnation - age)
        self.tell(who, check_level=CheckLevel.L3, hard=True, incarnation=life)

    @rule(who=WHO, prompt=PROMPTS, outcome=OUTCOMES)
    def comparison(self, who: int, prompt: int, outcome: str) -> None:
        """A verdict of the shadow."""
        self.tell(who, check_level="L4", prompt_fingerprint=f"p{prompt}", outcome=outcome)

    @rule(who=WHO, outcome=OUTCOMES)
    def suite(self, who: int, outcome: str) -> None:
        """A suite that somebody published by hand."""
        self.tell(who, check_level="L5", outcome=outcome)

    @rule(who=WHO, action=ACTIONS)
    def request(self, who: int, action: str) -> None:
        """An operator asks for something about one instance."""
        name = self.name(who)
        self.world._apply(name, self.asked(action=action, instance_id=name))

    @rule(action=st.sampled_from(["pause", "resume"]))
    def pause(self, action: str) -> None:
        """An operator stops or resumes acting."""
        self.world.fleet.pause(self.asked(action=action))

    @rule(backlog=BACKLOGS)
    def reset_brake(self, backlog: str) -> None:
        """An operator takes the fleet brake off, if it is on."""
        self.world.reset_brake(backlog)

    # What engines, executors and agents do

    @rule(who=WHO)
    def turn(self, who: int) -> None:
        """The engine goes bad, or well again."""
        engine = self.world.engines[self.name(who)]
        engine.good = not engine.good

    @rule(who=WHO)
    def crash(self, who: int) -> None:
        """The engine's process ends."""
        self.world.crash(self.name(who))

    @rule(who=WHO)
    def restart_by_itself(self, who: int) -> None:
        """The engine's process is started by somebody else."""
        self.world.restart_by_itself(self.name(who))

    @rule(who=WHO)
    def observe(self, who: int) -> None:
        """The executor says what it sees."""
        self.world.observe(self.name(who))

    @rule(who=WHO, which=st.integers(0, 20))
    def say_again(self, who: int, which: int) -> None:
        """Something that the executor said arrives once more, out of order."""
        self.world.say_again(self.name(who), which)

    @rule(who=WHO, outcome=st.sampled_from(ReportOutcome))
    def obey(self, who: int, outcome: ReportOutcome) -> None:
        """The executor reports."""
        self.world.obey(self.name(who), outcome)

    @rule(who=WHO)
    def answer_probes(self, who: int) -> None:
        """An agent runs the suite that is asked for."""
        self.world.answer_probes(self.name(who))

    # What happens to the manager itself

    @rule(seconds=st.sampled_from([1, 3, 10, 21, 130, 700]))
    def wait(self, seconds: int) -> None:
        """Time passes."""
        self.world.wait(seconds)

    @rule(hours=st.sampled_from([-1, 1]))
    def set_clock(self, hours: int) -> None:
        """The manager's clock is set back or forward."""
        self.hours_back += max(0, -hours)
        self.world.set_clock(hours)

    @rule()
    def reload(self) -> None:
        """The manager dies and another one goes on from what is stored."""
        self.world.reload()

    @rule(rules=WHICH_RULES)
    def change_rules(self, rules: int) -> None:
        """Other rules come into force."""
        self.world.use(RULES[rules])

    def tell(self, who: int, **fields: Any) -> None:
        """Deliver one verdict."""
        self.world.deliver([self.world.verdict(self.name(who), **fields)])

    def asked(self, **fields: Any) -> ActionRequest:
        """Return an operator's request; without an id of its own it would be a copy of the last."""
        known = {"message_id": self.world._id(), "timestamp": self.world.now}
        return ActionRequest(**known, requested_by="alice", **fields)

    @invariant()
    def holds(self) -> None:
        """What must hold between any two steps."""
        type(self).taken += 1
        self.world.check()

    def teardown(self) -> None:
        """With everybody at work every incident ends; what clocks were set back is waited out."""
        self.world.fleet.pause(self.asked(action="resume"))
        self.world.settle(SETTLING_S + self.hours_back * 3600, backlog="skip")
        left = self.world.open_incidents()
        if InstanceState.QUARANTINED in self.world.states().values():
            # Who waits for a person leaves no room for those who go on failing.
            left = [one for one in left if one.status != "held"]
        assert left == []
        assert set(self.world.states().values()) <= AT_REST


def run_fleets(machine: type[FleetMachine], fleets: int) -> None:
    """Let so many random fleets live."""
    chosen = settings(
        max_examples=fleets,
        stateful_step_count=STEPS_PER_FLEET,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chosen)


def test_random_fleets_keep_every_promise(record_property: Callable[[str, object], None]) -> None:
    """Floor, budgets, brakes, fences, probation and ends of incidents, over so many steps."""
    FleetMachine.taken = 0
    while FleetMachine.taken < STEPS:
        run_fleets(FleetMachine, max(20, (STEPS - FleetMachine.taken) // STEPS_PER_FLEET))
    record_property("steps", FleetMachine.taken)
