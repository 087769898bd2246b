"""Observe mode: everything is judged and told, nothing is done, and whatever runs serves."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatemesh_common.messages import (
    Action,
    ActionRequest,
    CheckLevel,
    InstanceState,
    ReportOutcome,
)
from gatemesh_health_manager.assess import assess
from gatemesh_health_manager.facts import NO_FACTS, Facts
from gatemesh_health_manager.policy import Policy, parse_policy
from gatemesh_health_manager.record import Condition, Decision, InstanceRecord, Tick
from gatemesh_health_manager.states import Trigger

from .samples import NO_ROOM, NOW, ROOM, at, hard, in_pool, probe_result, record, seen, verdict
from .test_promises import NAME, NAMES, STEPS, Step, ask, burst, proof
from .world import World

S = InstanceState
MODE = '[defaults]\nmode = "observe"\n'
OBSERVE = parse_policy(MODE)
RULES = OBSERVE.defaults


def observed(
    about: InstanceRecord, event: Any, facts: Facts = NO_FACTS, after_s: float = 0, **fields: Any
) -> Decision:
    """Return what is decided in observe mode."""
    pool = fields.get("pool", ROOM)
    policy = fields.get("policy", RULES)
    return assess(about, facts, event, pool, policy=policy, now=at(after_s))


def switch(policy: Policy) -> Step:
    """Other rules come into force."""

    def step(world: World) -> None:
        world.fleet.policy = policy

    return step


def ordered(world: World, name: str) -> Action:
    """Return what is in flight."""
    return world.orders[name].command.action


def let_go(world: World) -> World:
    """Let everybody do their work until nothing is under way."""
    for _ in range(2):
        world.settle(300, backlog="skip")
        world.wait(700)
    return world


@pytest.mark.parametrize(
    ("event", "facts", "would"),
    [
        pytest.param(verdict(), Facts(6, 6), "drain, restart", id="A"),
        pytest.param(hard(), NO_FACTS, "eject, confirm, restart", id="B"),
    ],
)
def test_an_accusation_is_told_and_not_acted_on(event: Any, facts: Facts, would: str) -> None:
    """The incident says what would be done; the instance goes on at full weight."""
    decision = observed(record(), event, facts)
    [incident] = decision.incidents
    assert (incident.status, incident.would) == ("held", would)
    assert decision.commands == ()
    assert (decision.record.state, decision.record.weight) == (S.HEALTHY, 1.0)


def test_c_and_d_say_what_they_would_do() -> None:
    """Shift and drain, or eject and replace; repair where the rules try it."""
    world = World(NAMES, OBSERVE)
    world.start_up()
    for prompt in range(3):
        world.deliver([world.verdict("a", check_level="L4", prompt_fingerprint=f"p{prompt}")])
    world.deliver([world.verdict("b", check_level="L5") for _ in range(2)])
    world.wait(1)
    known = {one.condition: one.would for one in world.incidents.values()}
    assert known == {Condition.C: "shift, drain, restart", Condition.D: "eject, replace"}
    assert world.fleet.records["a"].shift_until is None


def test_a_repair_would_come_first() -> None:
    """An instance that is repaired in place is ejected, not drained."""
    rules = in_pool(repair={"enabled": True, "conditions": frozenset({"A"})})
    rules = rules.model_copy(update={"mode": "observe"})
    [incident] = observed(record(), verdict(), Facts(6, 6), policy=rules).incidents
    assert incident.would == "eject, repair, restart"


@pytest.mark.parametrize(
    ("pool", "would"),
    [
        pytest.param(NO_ROOM, "wait for room: only 0 would be left", id="budget"),
        pytest.param(replace(ROOM, paused=True), "nothing, the pool is paused", id="paused"),
        pytest.param(replace(ROOM, braked=True), "nothing, the fleet brake is on", id="braked"),
        pytest.param(
            replace(ROOM, accused=frozenset("xyz")),
            "nothing, the fleet brake would fall: 4 of 4",
            id="brake-falls",
        ),
    ],
)
def test_brakes_are_told_too(pool: Any, would: str) -> None:
    """What would not be done is not promised, and the brake itself stays off."""
    decision = observed(record(), hard(), pool=pool)
    assert decision.incidents[0].would.startswith(would)
    assert decision.brake is None


def test_the_score_falls_and_the_weight_stays() -> None:
    """Judging goes on: the doubt is seen, routing does not follow it."""
    decision = observed(record(penalty=39.0), hard())
    assert decision.record.state is S.SUSPECT
    assert decision.record.weight == 1.0


@pytest.mark.parametrize("ceiling", [0.0, 0.3])
def test_an_operators_ceiling_holds(ceiling: float) -> None:
    """Observe mode binds the manager, not people."""
    assert observed(record(weight_ceiling=ceiling), Tick("t")).record.weight == ceiling


def test_a_first_life_serves_at_once() -> None:
    """Nobody is kept out until probes pass; the suite is asked for soon all the same."""
    about = record(S.STARTING, incarnation=0, life_id=None, running=False, base_url=None)
    decision = observed(about, seen(), after_s=1)
    assert (decision.record.state, decision.record.weight) == (S.HEALTHY, 1.0)
    assert (decision.record.ticket, decision.record.probe_from) == (None, at(1))
    assert (decision.commands, decision.incidents) == ((), ())


def test_an_exit_waits_for_whoever_runs_the_process() -> None:
    """It is told that it would be restarted; back by itself, it serves and the incident ends."""
    gone = observed(record(), seen(running=False, life_id=None), after_s=1).record
    assert (gone.state, gone.weight) == (S.STARTING, 0.0)
    assert gone.incident is not None
    assert (gone.incident.condition, gone.incident.would) == (Condition.EXIT, "restart")
    late = observed(gone, Tick("t"), after_s=500).record
    assert (late.due_at, late.flight) == (None, None)
    later = seen(life_id="life-2", timestamp=at(501))
    back = observed(late, later, after_s=501)
    assert (back.record.state, back.record.incarnation) == (S.HEALTHY, 2)
    assert [(one.status, one.reason) for one in back.incidents] == [
        ("resolved", "serves unproven: the pool is in observe mode")
    ]
    assert back.commands == ()


def test_a_life_that_nobody_asked_for_serves_and_costs_no_budget() -> None:
    """The incident tells that it would have been kept out."""
    decision = observed(record(), seen(life_id="life-2"), after_s=1)
    assert (decision.record.state, decision.record.restarts) == (S.HEALTHY, ())
    [incident] = decision.incidents
    assert (incident.status, incident.would) == ("resolved", "keep out until its probes pass")


def test_a_probe_suite_refutes_an_observed_proof() -> None:
    """As it would have confirmed it: one bad prompt is seen as such."""
    asked = observed(record(), hard()).record
    assert asked.ticket is not None
    passed = probe_result("passed", asked.ticket.ticket_id, timestamp=at(2))
    [incident] = observed(asked, passed, after_s=2).incidents
    assert (incident.status, incident.reason) == ("resolved", "refuted by probes")


def test_an_observed_incident_ends_when_nothing_fails_any_more() -> None:
    """One incident for one trouble, however long it lasts."""
    told = observed(record(), verdict(), Facts(6, 6)).record
    again = observed(told, verdict(timestamp=at(500)), Facts(7, 7), after_s=500).record
    assert again.incident == told.incident
    assert observed(again, Tick("t"), after_s=1099).incidents == ()
    [incident] = observed(again, Tick("t"), after_s=1100).incidents
    assert (incident.status, incident.would) == ("expired", "drain, restart")


def test_acting_begins_with_fresh_evidence() -> None:
    """What was only observed is no backlog: it ends, and the next proof acts."""
    told = observed(record(), hard()).record
    act = in_pool()
    first = observed(told, Tick("t"), after_s=1, policy=act)
    assert first.commands == ()
    [incident] = first.incidents
    assert incident.status == "expired"
    late = observed(first.record, hard(timestamp=at(0)), after_s=1, policy=act)
    assert late.commands == ()
    fresh = observed(first.record, hard(timestamp=at(2)), after_s=2, policy=act)
    assert [order.command.action for order in fresh.commands] == [Action.EJECT]


def test_acting_gives_an_absent_process_the_time_of_a_start() -> None:
    """It is no backlog either; only after that it is started."""
    about = record(S.STARTING, running=False)
    waiting = observed(about, Tick("t"), policy=in_pool()).record
    assert waiting.due_at == at(300)


def test_what_is_held_becomes_observed() -> None:
    """Going back to act does not fire it then."""
    held = observed(record(), hard(), pool=NO_ROOM, policy=in_pool()).record
    assert held.incident is not None
    assert held.incident.would == ""
    [incident] = observed(held, Tick("t"), after_s=1).incidents
    assert incident.would == "eject, confirm, restart"


def test_an_ejected_instance_is_put_back_and_balancers_are_told() -> None:
    """Its life is spared; the one command undoes what was done."""
    out = observed(record(), hard(), policy=in_pool()).record
    assert out.state is S.EJECTED
    decision = observed(out, Tick("t"), after_s=1)
    assert [step.trigger for step in decision.transitions] == [Trigger.SPARED, Trigger.LET_THROUGH]
    assert (decision.record.state, decision.record.weight) == (S.HEALTHY, 1.0)
    assert decision.record.wanted is Action.READMIT
    assert decision.incidents[0].status == "resolved"


def test_a_drain_under_way_ends_with_a_start() -> None:
    """It cannot be recalled; the process is started again and serves without probes."""
    world = World(NAMES)
    world.start_up()
    burst("a")(world)
    switch(OBSERVE)(world)
    world.wait(1)
    assert world.states()["a"] is S.DRAINING
    world.obey("a")
    world.observe("a")
    assert ordered(world, "a") is Action.RESTART
    world.obey("a")
    assert world.states()["a"] is S.HEALTHY
    assert ordered(world, "a") is Action.READMIT
    assert let_go(world).restarts == {"a": 1}


def test_a_repair_under_way_ends_first() -> None:
    """No request goes to an engine whose weights are just being loaded."""
    repairing = parse_policy("[defaults.repair]\nenabled = true\nconditions = ['A']\n")
    world = World(NAMES, repairing)
    world.start_up()
    burst("a")(world)
    world.obey("a")
    assert ordered(world, "a") is Action.REPAIR
    switch(OBSERVE)(world)
    world.wait(1)
    assert world.states()["a"] is S.EJECTED
    world.obey("a")
    assert (world.states()["a"], ordered(world, "a")) == (S.HEALTHY, Action.READMIT)


def test_what_only_tells_would_only_tell() -> None:
    """Whatever brakes there are."""
    rules = parse_policy(MODE + '[defaults.condition_b]\nplaybook = "tell"\n').defaults
    [incident] = observed(record(), hard(), pool=NO_ROOM, policy=rules).incidents
    assert incident.would == "tell"


def test_a_drain_that_failed_is_not_followed_by_a_restart() -> None:
    """The process runs: it is put back as soon as a look shows it."""
    world = World(NAMES)
    world.start_up()
    burst("a")(world)
    switch(OBSERVE)(world)
    world.obey("a", ReportOutcome.FAILED)
    assert world.states()["a"] is S.RESTARTING
    assert world.orders == {}
    world.wait(6)
    world.observe("a")
    assert world.states()["a"] is S.HEALTHY
    assert let_go(world).restarts == {}


def test_what_a_person_asks_for_is_done() -> None:
    """Observe mode binds the manager, not people."""
    world = World(NAMES, OBSERVE)
    world.start_up()
    ask("a", "restart")(world)
    let_go(world)
    assert world.restarts == {"a": 1}
    assert world.states() == dict.fromkeys(NAMES, S.HEALTHY)


def test_what_is_quarantined_stays_out() -> None:
    """A person has to look at it, whatever the mode."""
    about = record(S.QUARANTINED)
    assert observed(about, Tick("t")).record.state is S.QUARANTINED


def test_one_pool_may_be_observed_while_others_are_acted_on() -> None:
    """The mode is a pool's, and inherits like every other key."""
    policy = parse_policy(MODE + '[pools.chat]\nmode = "act"\n[pools.chat.drain]\ngrace_s = 5\n')
    modes = [policy.for_pool(name).mode for name in ("chat", "other")]
    assert modes == ["act", "observe"]
    assert Policy().for_pool("any").mode == "act"


STRICT = parse_policy(MODE + "[defaults.fleet_brake]\nmin_accused = 1\nmax_accused_share = 0.3\n")
REPAIR = parse_policy(MODE + "[defaults.repair]\nenabled = true\nconditions = ['A','B','C','D']\n")
OBSERVING = st.sampled_from([OBSERVE, STRICT, REPAIR])


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=40), OBSERVING)
def test_never_a_command_and_never_another_weight(steps: list[Step], policy: Policy) -> None:
    """Whatever is seen: no command, and what runs is in rotation with weight 1."""
    world = World(NAMES, policy)
    world.start_up()
    for step in steps:
        if step.__qualname__.startswith("ask."):
            continue
        step(world)
        assert world.fences == {}
        for one in world.fleet.records.values():
            assert one.weight == float(one.running), one
    world.wait(700)
    assert world.open_incidents() == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(STEPS, st.builds(switch, OBSERVING)), max_size=40), OBSERVING)
def test_whatever_was_out_comes_back(steps: list[Step], policy: Policy) -> None:
    """Switched over in the middle of anything: what is not a person's to release serves again."""
    world = World(NAMES)
    world.start_up()
    for step in steps:
        step(world)
    world.fleet.pause(
        ActionRequest(timestamp=NOW, requested_by="alice", action="resume", pool="default")
    )
    switch(policy)(world)
    let_go(world)
    ended = {name for name, one in world.fleet.records.items() if one.running and one.weight != 1.0}
    left = {name for name, state in world.states().items() if state is S.QUARANTINED}
    assert ended <= left
    assert world.open_incidents() == []


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, max_size=40), NAME)
def test_acting_never_begins_with_a_backlog(steps: list[Step], name: str) -> None:
    """The switch itself orders nothing; the first fresh proof does, as far as brakes allow."""
    world = World(NAMES, OBSERVE)
    world.start_up()
    for step in steps:
        if not step.__qualname__.startswith("ask."):
            step(world)
    switch(Policy())(world)
    world.wait(1)
    assert world.fences == {}
    assert world.open_incidents() == []
    before = world.states()[name]
    proof(name)(world)
    assert world.states()[name] in (S.EJECTED, before, S.SUSPECT)


def test_the_playbook_of_an_own_condition_is_told() -> None:
    """What stays away is told as that."""
    rules = parse_policy(
        MODE + '[[defaults.own_conditions]]\nname = "odd"\nlevels = ["LX"]\nplaybook = "stop"\n'
    ).defaults
    facts = Facts(own=(("odd", Facts(1, 1)),))
    [incident] = observed(record(), verdict(CheckLevel.PLUGIN), facts, policy=rules).incidents
    assert (incident.name, incident.would) == ("odd", "drain, stop")
    assert incident.playbook == "stop"
