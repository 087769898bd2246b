"""Playbooks as data: which orders there can be, and that each is carried out as it says."""

from itertools import product
from typing import get_args

import pytest
from benchmarks.recorded import DAWN, MadeUpPool

from gatemesh_common.messages import Action, CheckLevel, InstanceState, ReportOutcome
from gatemesh_health_manager.comparing import repeat
from gatemesh_health_manager.playbooks import ORDERS, SHIPPED, Plan, Step
from gatemesh_health_manager.policy import Policy, PolicyError, parse_policy
from gatemesh_health_manager.record import Incident

from .test_promises import UNUSUAL_RULES, burst, proof, spoil
from .world import World

S = InstanceState
NAMES = ("a", "b", "c")
MINE = '[defaults.condition_{condition}]\nplaybook = "mine"\n[playbooks.mine]\nsteps = {steps}\n'


def rules(*steps: str, condition: str = "a", more: str = "") -> Policy:
    """Return rules by which a condition is answered by these steps."""
    return parse_policy(MINE.format(condition=condition, steps=list(steps)) + more)


def world(*steps: str) -> World:
    """Return a pool in which condition A has just been broken on `a`."""
    made = World(NAMES, rules(*steps))
    made.start_up()
    burst("a")(made)
    return made


def ordered(made: World) -> Action | None:
    """Return what is in flight."""
    return made.orders["a"].command.action if "a" in made.orders else None


def only(made: World) -> Incident:
    """Return the only incident."""
    [incident] = made.incidents.values()
    return incident


def test_there_are_31_orders() -> None:
    """Whatever else people write is refused when the file is read."""
    words = [
        " ".join(steps)
        for length in range(1, 6)
        for steps in product(get_args(Step), repeat=length)
    ]
    possible = [word for word in words if ORDERS.fullmatch(word)]
    assert len(possible) == 31
    assert all(word.endswith(("restart", "replace", "stop", "tell")) for word in possible)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            '[playbooks.mine]\nsteps = ["drain", "confirm", "restart"]',
            "line 2: playbooks.mine.steps: drain, confirm, restart: cannot be carried "
            'out in this order; possible: "tell" alone',
            id="nothing-left-to-confirm",
        ),
        pytest.param(
            '[playbooks.mine]\nsteps = ["drain"]', "line 2: playbooks.mine.steps", id="no-end"
        ),
        pytest.param("[playbooks.mine]\nsteps = []", "nothing: cannot", id="no-step"),
        pytest.param(
            '[playbooks.mine]\nsteps = ["tell", "drain", "restart"]', "line 2", id="tell-and-act"
        ),
        pytest.param(
            '[playbooks.mine]\nsteps = ["reboot"]',
            "line 2: playbooks.mine.steps.0: Input should be 'shift', 'drain'",
            id="no-such-step",
        ),
        pytest.param(
            '[playbooks.mine]\nsteps = ["tell"]\nonce = true',
            "line 3: playbooks.mine.once: Extra",
            id="key",
        ),
        pytest.param(
            '[playbooks.roll_back]\nsteps = ["tell"]',
            "line 1: playbooks.roll_back.[key]: roll_back is taken",
            id="name-of-a-request",
        ),
        pytest.param("playbooks = 3", "line 1: playbooks: Input should be", id="no-table"),
        pytest.param(
            '[pools.chat.condition_b]\n\nplaybook = "mine"',
            "line 3: pools.chat.condition_b.playbook: there is no playbook 'mine'; known: confirm, "
            "replace, restart, shift, stop, tell",
            id="unknown",
        ),
        pytest.param(
            '[[defaults.own_conditions]]\nname = "a1"\nlevels = ["L1"]\nplaybook = "mine"\n'
            "[pools.chat.drain]\ngrace_s = 3",
            "line 4: defaults.own_conditions.0.playbook: there is no playbook 'mine'",
            id="unknown-of-an-own-condition",
        ),
    ],
)
def test_faults_name_line_and_what_is_possible(text: str, told: str) -> None:
    """And once, though every pool inherits playbooks."""
    with pytest.raises(PolicyError) as raised:
        parse_policy(text)
    assert told in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_pools_know_every_playbook_and_may_change_one() -> None:
    """The shipped ones too, unless the file names them anew."""
    policy = rules("eject", "stop", more='[pools.chat.playbooks.mine]\nsteps = ["tell"]\n')
    assert policy.for_pool("other").plan("mine") == Plan("mine", ("eject", "stop"))
    assert policy.for_pool("chat").plan("mine").only_tells
    assert policy.for_pool("chat").plan("stop").steps == ("drain", "stop")
    assert set(policy.defaults.playbooks) == {*SHIPPED, "mine"}


def test_rules_are_stored_with_steps_in_their_order() -> None:
    """Or a replay would follow other ones."""
    policy = rules("shift", "eject", "confirm", "restart")
    assert Policy.model_validate_json(policy.canonical()) == policy


def test_a_drain_may_be_followed_by_new_weights() -> None:
    """Running requests end first."""
    made = world("drain", "replace")
    assert (ordered(made), only(made).playbook) == (Action.DRAIN, "mine")
    made.obey("a")
    assert (made.states()["a"], ordered(made)) == (S.REPLACING, Action.REPLACE)
    made.settle(300)
    assert (made.replacements, made.states()["a"]) == ({"a": 1}, S.HEALTHY)


def test_any_condition_may_have_its_suspicion_confirmed() -> None:
    """Clean probes spare the life."""
    made = world("eject", "confirm", "restart")
    assert made.states()["a"] is S.EJECTED
    made.settle(60, step_s=5)
    assert (made.restarts, only(made).reason) == ({}, "refuted")


def test_traffic_may_be_shifted_before_anything() -> None:
    """For as long as condition C says."""
    made = world("shift", "eject", "restart")
    assert (made.states()["a"], made.fleet.records["a"].weight) == (S.SUSPECT, 0.1)
    made.wait(11)
    assert (made.states()["a"], ordered(made)) == (S.EJECTED, Action.EJECT)
    made.settle(300)
    assert made.restarts == {"a": 1}


def test_out_at_once_and_left_to_a_person() -> None:
    """The process stays as it is, for him to look at."""
    made = world("eject", "stop")
    made.obey("a")
    assert (made.states()["a"], only(made).status) == (S.QUARANTINED, "quarantined")
    assert (made.engines["a"].running, ordered(made)) == (True, None)


def test_stopped_even_when_it_exits_on_its_way_out() -> None:
    """Nothing starts what was meant to stay away."""
    made = world("eject", "stop")
    made.crash("a")
    made.settle(600)
    assert (made.states()["a"], made.restarts) == (S.QUARANTINED, {})


def test_a_repair_comes_before_a_person() -> None:
    """Where it fails, or probes refuse it, the instance stays away."""
    made = world("eject", "repair", "stop")
    made.obey("a")
    assert ordered(made) is Action.REPAIR
    made.obey("a", ReportOutcome.FAILED)
    assert made.states()["a"] is S.QUARANTINED
    other = world("eject", "repair", "stop")
    spoil("a", good=False)(other)
    other.settle(300)
    assert (other.states()["a"], other.restarts) == (S.QUARANTINED, {})


def test_new_weights_after_a_repair_that_failed() -> None:
    """The steps are gone through in their order."""
    made = world("eject", "confirm", "repair", "replace")
    spoil("a", good=False)(made)
    made.obey("a")
    made.answer_probes("a")
    assert ordered(made) is Action.REPAIR
    made.obey("a", ReportOutcome.FAILED)
    assert ordered(made) is Action.REPLACE


def test_tell_only_tells() -> None:
    """The incident is there for people; the instance serves as its score says."""
    made = world("tell")
    assert (made.states()["a"], made.orders) == (S.HEALTHY, {})
    assert (only(made).status, only(made).would) == ("held", "")
    made.wait(599)
    assert only(made).status == "held"
    made.wait(2)
    assert (only(made).status, only(made).reason) == (
        "expired",
        "nothing failed for 600 s; was only told",
    )


def test_what_only_tells_gives_way_and_accuses_nobody() -> None:
    """A condition that acts takes it over; the fleet brake counts it not."""
    made = world("tell")
    assert made.fleet.records["a"].accused_at is None
    proof("a")(made)
    assert (made.states()["a"], only(made).condition.value) == (S.EJECTED, "B")
    for name in ("b", "c"):
        burst(name)(made)
    assert not made.braked


def test_an_exit_is_no_matter_of_telling() -> None:
    """The process is started again under an incident of its own heading."""
    made = world("tell")
    made.crash("a")
    assert (only(made).condition.value, only(made).status) == ("exit", "open")
    assert ordered(made) is Action.RESTART
    other = world("tell")
    other.restart_by_itself("a")
    assert (only(other).condition.value, other.states()["a"]) == ("exit", S.PROBATION)


def test_silence_says_nothing_of_the_weights() -> None:
    """Whatever playbook condition D has, suites without an answer only restart."""
    policy = rules("drain", "replace", condition="d")
    made = World(NAMES, policy)
    made.start_up()
    silent = {"faults": {"hello": "no answer"}, "failed": ["hello"]}
    fields = {"check_level": CheckLevel.L5, "details": silent}
    made.deliver([made.verdict("a", **fields), made.verdict("a", **fields)])
    assert only(made).plan == ("drain", "restart")


@pytest.mark.parametrize("text", ["", '[defaults]\nmode = "observe"\n'])
def test_histories_with_other_playbooks_replay(text: str) -> None:
    """In observe mode too: every decision is the stored one."""
    policy = parse_policy(text + UNUSUAL_RULES)
    pool = MadeUpPool(("engine-0", "engine-1", "engine-2"), policy, seed=2)
    pool.live(400, 20)
    assert repeat(pool.recorder.history(), DAWN).differences == []
    triggers = {step.trigger for step in pool.recorder.steps}
    assert triggers >= ({"let_through"} if text else {"proven", "repaired", "distrusted"})
