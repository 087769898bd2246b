"""Conditions C and D from the first failure to the return, in a whole pool."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatemesh_common.messages import (
    Action,
    CheckLevel,
    InstanceState,
    ReportOutcome,
    Verdict,
)
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.policy import parse_policy
from gatemesh_health_manager.record import Condition

from .world import World

S = InstanceState
NAMES = ("a", "b", "c", "d")
REPAIR = "[defaults.repair]\nenabled = true\nconditions = ['C', 'D']\n"


def pool(rules: str = "", names: tuple[str, ...] = NAMES) -> World:
    """Return a pool whose instances are all in rotation."""
    world = World(names, parse_policy(rules))
    world.start_up()
    world.now += timedelta(seconds=60)
    return world


def disagree(world: World, count: int, name: str = "a", outcome: str = "failed") -> None:
    """Have the shadow judge answers to different prompts."""
    for _ in range(count):
        world.now += timedelta(seconds=1)
        world.deliver([world.verdict(name, check_level=CheckLevel.L4, outcome=outcome)])


def fail_suites(world: World, count: int, name: str = "a", **fields: object) -> None:
    """Have people publish failed suites."""
    for _ in range(count):
        world.now += timedelta(seconds=1)
        world.deliver([world.verdict(name, check_level=CheckLevel.L5, **fields)])


def ordered(world: World, name: str = "a") -> Action | None:
    """Return the command in flight."""
    order = world.orders.get(name)
    return order.command.action if order else None


def only_incident(world: World) -> tuple[str, str, str]:
    """Return condition, status and reason of the one incident there is."""
    [incident] = world.incidents.values()
    return (incident.condition.value, incident.status, incident.reason)


def test_the_loop_closes_after_condition_c() -> None:
    """Suspect, traffic shifted away, drained, restarted, proven, back."""
    world = pool()
    disagree(world, 2)
    assert world.states()["a"] is S.HEALTHY
    disagree(world, 1)
    record = world.fleet.records["a"]
    assert (record.state, record.weight) == (S.SUSPECT, 0.1)
    assert ordered(world) is None
    assert only_incident(world)[:2] == ("C", "open")
    world.wait(9)
    assert world.states()["a"] is S.SUSPECT
    world.wait(1)
    assert (world.states()["a"], ordered(world)) == (S.DRAINING, Action.DRAIN)
    world.obey("a")
    world.obey("a")
    world.answer_probes("a")
    assert world.states()["a"] is S.HEALTHY
    assert only_incident(world) == ("C", "resolved", "repaired")
    assert world.restarts == {"a": 1}


def test_a_pass_between_keeps_the_instance() -> None:
    """Two, a pass, two: nothing."""
    world = pool()
    disagree(world, 2)
    disagree(world, 1, outcome="passed")
    disagree(world, 2)
    assert world.incidents == {}
    disagree(world, 1)
    assert world.states()["a"] is S.SUSPECT


def test_a_pass_while_it_is_held_ends_the_incident() -> None:
    """What was held is looked at again before it acts."""
    world = pool(names=("a",))
    disagree(world, 3)
    assert only_incident(world)[1] == "held"
    assert world.fleet.records["a"].weight > 0.1
    disagree(world, 1, outcome="passed")
    assert only_incident(world) == ("C", "resolved", "a later L4 check passed")


def test_room_that_is_gone_when_the_drain_is_due_holds_it() -> None:
    """The budget is looked at again; the weight stays low until it is decided."""
    world = pool(names=("a", "b"))
    disagree(world, 3)
    world.crash("b")
    world.wait(10)
    assert world.states()["a"] is S.SUSPECT
    assert [i.status for i in world.open_incidents() if i.condition is Condition.C] == ["held"]
    world.wait(601)
    record = world.fleet.records["a"]
    assert (record.incident, record.shift_until) == (None, None)
    assert record.weight > 0.1


def test_proof_while_traffic_is_shifted_goes_first() -> None:
    """The graver condition takes the incident over."""
    world = pool()
    disagree(world, 3)
    world.deliver([world.verdict("a", check_level=CheckLevel.L3, hard=True)])
    assert world.states()["a"] is S.EJECTED
    assert only_incident(world)[:2] == ("B", "open")
    assert world.fleet.records["a"].shift_until is None


def test_a_pause_holds_condition_c() -> None:
    """Nothing is shifted, nothing is drained, and it is told."""
    world = pool()
    say(world, "pause")
    disagree(world, 3)
    world.wait(30)
    assert only_incident(world)[1] == "held"
    say(world, "resume")
    world.wait(1)
    assert world.fleet.records["a"].weight == 0.1
    world.wait(10)
    assert world.states()["a"] is S.DRAINING


def say(world: World, action: str) -> None:
    """Have an operator pause or resume the pool."""
    fields = {"timestamp": world.now, "requested_by": "alice", "action": action}
    world.fleet.pause(Asked.model_validate(fields))


def test_the_loop_closes_after_condition_d() -> None:
    """A routine suite fails, a second one is asked for at once, then: out, replaced, back."""
    world = pool()
    world.engines["a"].good = False
    while world.fleet.records["a"].ticket is None:
        world.wait(20)
        for name in "bcd":
            world.answer_probes(name)
    assert world.fleet.records["a"].ticket.purpose == "routine"
    world.answer_probes("a")
    assert world.states()["a"] is S.HEALTHY
    world.wait(2)
    world.answer_probes("a")
    assert (world.states()["a"], ordered(world)) == (S.EJECTED, Action.EJECT)
    world.obey("a")
    assert (world.states()["a"], ordered(world)) == (S.REPLACING, Action.REPLACE)
    world.obey("a")
    assert world.states()["a"] is S.PROBATION
    world.answer_probes("a")
    assert world.states()["a"] is S.HEALTHY
    assert only_incident(world) == ("D", "resolved", "repaired")
    assert (world.replacements, world.restarts) == ({"a": 1}, {})


@pytest.mark.parametrize("outcome", [ReportOutcome.FAILED, ReportOutcome.REFUSED])
def test_a_bad_download_never_returns_to_traffic(outcome: ReportOutcome) -> None:
    """Tried again within the restart budget, then left to a person."""
    world = pool()
    fail_suites(world, 2)
    world.obey("a")
    for _ in range(3):
        assert world.states()["a"] is S.REPLACING
        world.wait(20)
        world.obey("a", outcome)
    assert world.states()["a"] is S.QUARANTINED
    assert only_incident(world)[:2] == ("D", "quarantined")


def test_a_replacement_that_probes_refuse_is_replaced_again() -> None:
    """Not restarted with the same weights."""
    world = pool()
    fail_suites(world, 2)
    world.obey("a")
    world.obey("a")
    world.engines["a"].good = False
    world.answer_probes("a")
    world.wait(5)
    assert (world.states()["a"], ordered(world)) == (S.REPLACING, Action.REPLACE)


def test_an_instance_that_dies_on_its_way_to_a_replacement_is_replaced() -> None:
    """An exit does not turn it into a restart."""
    world = pool()
    fail_suites(world, 2)
    world.crash("a")
    world.obey("a")
    assert (world.states()["a"], ordered(world)) == (S.REPLACING, Action.REPLACE)


def test_an_eject_without_a_report_does_not_stop_the_replacement() -> None:
    """The executor may have been away."""
    world = pool()
    fail_suites(world, 2)
    world.wait(31)
    assert world.states()["a"] is S.REPLACING


def test_the_first_answer_to_a_ticket_counts() -> None:
    """Several agents answer; one ticket is one suite."""
    world = pool()
    world.wait(300)
    [name] = [name for name, record in world.fleet.records.items() if record.ticket]
    ticket = world.fleet.records[name].ticket
    assert ticket is not None
    failed = [
        world.verdict(name, check_level=CheckLevel.L5, request_id=ticket.ticket_id)
        for _ in range(3)
    ]
    world.deliver(failed)
    record = world.fleet.records[name]
    assert record.streaks.d.length == 1
    assert world.incidents == {}
    assert record.penalty == pytest.approx(20, abs=10)


def test_proof_in_a_suite_ejects_at_once() -> None:
    """The suite's prompts are harmless: NaN in an answer to them is the engine's."""
    world = pool()
    fail_suites(world, 1, details={"faults": {"arithmetic": "nan_logits"}})
    assert world.states()["a"] is S.EJECTED
    assert only_incident(world)[:2] == ("B", "open")


@pytest.mark.parametrize(
    ("details", "state"),
    [
        pytest.param({"health": "no 200 in time"}, S.RESTARTING, id="not-up"),
        pytest.param({"a": "no answer in time", "b": "status 500"}, S.RESTARTING, id="silent"),
        pytest.param({"a": "no answer in time", "b": "repetition"}, S.REPLACING, id="garbage-too"),
        pytest.param({"a": ["no answer"]}, S.REPLACING, id="not-a-word"),
        pytest.param({}, S.REPLACING, id="wrong-answers"),
    ],
)
def test_weights_are_not_to_blame_for_silence(details: dict[str, object], state: S) -> None:
    """An engine that hangs is ejected and restarted, without a pull."""
    world = pool()
    fail_suites(world, 2, details={"faults": details, "failed": list(details) or ["a"]})
    world.obey("a")
    assert world.states()["a"] is state
    assert only_incident(world)[:2] == ("D", "open")


LOADING = {"faults": {"health": "no 200 in time"}, "failed": ["health"]}


def probation_suite(world: World, **details: object) -> None:
    """Have an agent answer the ticket of a life in probation."""
    ticket = world.fleet.records["a"].ticket
    assert ticket is not None
    fields = {"check_level": CheckLevel.L5, "request_id": ticket.ticket_id, "details": details}
    world.deliver([world.verdict("a", **fields)])


def test_an_engine_that_loads_its_weights_is_not_restarted_for_it() -> None:
    """Found by compose with a real engine: each agent's minute would have begun it anew."""
    world = World(("a",), parse_policy("[defaults.restart]\nstart_timeout_s = 300\n"))
    world.observe("a")
    tickets = set()
    for _ in range(4):
        tickets.add(world.fleet.records["a"].ticket)
        world.now += timedelta(seconds=60)
        probation_suite(world, **LOADING)
        assert (world.states()["a"], ordered(world)) == (S.PROBATION, None)
    assert len(tickets) == 4
    world.now += timedelta(seconds=60)
    probation_suite(world, **LOADING)
    assert (world.states()["a"], ordered(world)) == (S.RESTARTING, Action.RESTART)


def test_an_engine_that_loads_is_refused_for_what_it_answers() -> None:
    """The wait is for one that does not answer yet."""
    world = World(("a",), parse_policy(""))
    world.observe("a")
    world.now += timedelta(seconds=60)
    probation_suite(world, failed=["arithmetic"])
    assert world.states()["a"] is S.RESTARTING


def test_a_restarted_engine_was_ready_and_must_stay_so() -> None:
    """The executor has waited for its `/health`."""
    world = pool()
    fail_suites(world, 2, details={**LOADING})
    world.obey("a")
    world.obey("a")
    assert world.states()["a"] is S.PROBATION
    probation_suite(world, **LOADING)
    assert world.states()["a"] is S.RESTARTING


def test_a_wrong_answer_beside_silence_distrusts_the_weights() -> None:
    """One that was answered and was not right."""
    world = pool()
    fail_suites(world, 2, details={"faults": {"a": "no answer"}, "failed": ["a", "b"]})
    world.obey("a")
    assert world.states()["a"] is S.REPLACING


@pytest.fixture
def repaired() -> World:
    """Give a pool in which an instance, accused by C, has just been repaired in place."""
    world = pool(REPAIR)
    disagree(world, 3)
    world.wait(10)
    assert (world.states()["a"], ordered(world)) == (S.EJECTED, Action.EJECT)
    world.obey("a")
    assert (world.states()["a"], ordered(world)) == (S.EJECTED, Action.REPAIR)
    world.obey("a")
    assert world.states()["a"] is S.PROBATION
    world.answer_probes("a")
    return world


def test_a_repair_spares_the_restart(repaired: World) -> None:
    """Out, repaired, proven, back: the same life."""
    record = repaired.fleet.records["a"]
    assert (record.state, record.incarnation) == (S.HEALTHY, 1)
    assert only_incident(repaired) == ("C", "resolved", "repaired")
    assert repaired.restarts == {}


def test_a_repair_is_tried_once_in_a_life(repaired: World) -> None:
    """What comes back afterwards ends the life."""
    disagree(repaired, 3)
    repaired.wait(10)
    assert repaired.states()["a"] is S.DRAINING


@pytest.mark.parametrize("outcome", [ReportOutcome.FAILED, ReportOutcome.REFUSED])
@pytest.mark.parametrize(
    ("condition", "state", "action"),
    [
        pytest.param("C", S.RESTARTING, Action.RESTART, id="c"),
        pytest.param("D", S.REPLACING, Action.REPLACE, id="d"),
    ],
)
def test_what_cannot_be_repaired_goes_the_usual_way(
    condition: str, state: InstanceState, action: Action, outcome: ReportOutcome
) -> None:
    """By the playbook of its condition."""
    world = pool(REPAIR)
    if condition == "C":
        disagree(world, 3)
        world.wait(10)
    else:
        fail_suites(world, 2)
    world.obey("a")
    assert ordered(world) is Action.REPAIR
    world.obey("a", outcome)
    assert (world.states()["a"], ordered(world)) == (state, action)


def test_a_repair_without_a_report_is_over_in_time() -> None:
    """A minute, then a restart."""
    world = pool(REPAIR)
    disagree(world, 3)
    world.wait(10)
    world.obey("a")
    world.wait(61)
    assert world.states()["a"] is S.RESTARTING


def test_the_requests_own_faults_count_for_nothing() -> None:
    """Neither score nor condition; a proof has the instance probed, and once."""
    world = pool()
    own = {"attribution": "request"}
    world.deliver([world.verdict("a", **own) for _ in range(9)])
    world.deliver([world.verdict("a", check_level=CheckLevel.L4, **own) for _ in range(9)])
    before = world.fleet.records["a"]
    assert (before.penalty, before.ticket, world.incidents) == (10, None, {})
    proofs = [world.verdict("a", check_level=CheckLevel.L3, hard=True, **own) for _ in range(9)]
    world.deliver(proofs)
    record = world.fleet.records["a"]
    assert record.ticket is not None
    assert (record.ticket.purpose, record.penalty) == ("suspicion", before.penalty)
    world.answer_probes("a")
    world.deliver([world.verdict("a", check_level=CheckLevel.L3, hard=True, **own)])
    assert world.fleet.records["a"].ticket is None
    assert record.probed_at is not None
    assert world.fleet.records["a"].probe_from == record.probed_at + timedelta(seconds=30)
    assert world.incidents == {}


@pytest.mark.parametrize("attribution", ["instance", "unknown"])
def test_other_faults_count(attribution: str) -> None:
    """Where no second instance could be asked, too."""
    world = pool()
    world.deliver([world.verdict("a", attribution=attribution) for _ in range(6)])
    assert world.states()["a"] is S.DRAINING


def test_copies_of_one_prompt_cost_points_once() -> None:
    """A client that repeats an odd prompt for an hour does not empty the pool."""
    world = pool()
    before = world.fleet.records["a"].penalty
    for _ in range(60):
        world.now += timedelta(seconds=1)
        copies = [
            world.verdict("a", check_level=CheckLevel.L3, prompt_fingerprint="same")
            for _ in range(3)
        ]
        world.deliver(copies)
    record = world.fleet.records["a"]
    assert before < record.penalty <= before + 15
    world.deliver([world.verdict("a", check_level=CheckLevel.L1, prompt_fingerprint="same")])
    assert world.fleet.records["a"].penalty > record.penalty + 4


SHADOW = st.lists(
    st.tuples(
        st.sampled_from(["failed", "failed", "passed", "skipped"]),
        st.integers(0, 6),
        st.sampled_from([CheckLevel.L4, CheckLevel.L4, CheckLevel.L5]),
    ),
    max_size=20,
)


@settings(max_examples=100, deadline=None)
@given(SHADOW, st.integers(1, 6))
def test_batches_and_duplicates_change_nothing(
    results: list[tuple[str, int, CheckLevel]], size: int
) -> None:
    """One by one, or in batches with copies of what came before: the same decisions."""
    worlds = [pool(), pool()]
    given_verdicts = [
        Verdict(
            message_id=f"m{number}",
            timestamp=worlds[0].now - timedelta(seconds=20 - number),
            instance_id="a",
            incarnation=1,
            request_id=f"r{number}",
            prompt_fingerprint=f"p{prompt}",
            check_level=level,
            outcome=outcome,
        )
        for number, (outcome, prompt, level) in enumerate(results)
    ]
    for each in given_verdicts:
        worlds[0].deliver([each])
    for start in range(0, len(results), size):
        batch = given_verdicts[start : start + size]
        worlds[1].deliver([*given_verdicts[: start // 2], *batch, *batch])
    one, other = (world.fleet.records["a"] for world in worlds)
    assert (one.state, one.streaks, one.weight) == (other.state, other.streaks, other.weight)
    assert (one.shift_until, one.probe_from) == (other.shift_until, other.probe_from)
    assert one.penalty == pytest.approx(other.penalty)
    opened, again = ([i.cause for i in world.incidents.values()] for world in worlds)
    assert opened == again
