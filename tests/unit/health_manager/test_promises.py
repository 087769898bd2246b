"""What holds whatever happens, in whatever order: the promises of the health manager."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatemesh_common.messages import (
    CheckLevel,
    InstanceState,
    ReportOutcome,
    Verdict,
)
from gatemesh_health_manager.asked import Asked
from gatemesh_health_manager.policy import Policy, parse_policy

from .samples import NOW
from .world import World

S = InstanceState
NAMES = ("a", "b", "c")
Step = Callable[[World], None]


def soft(name: str, prompt: int) -> Step:
    """A soft failure of one of a few prompts."""
    return lambda w: w.deliver([w.verdict(name, prompt_fingerprint=f"p{prompt}")])


def proof(name: str) -> Step:
    """A hard failure."""
    return lambda w: w.deliver([w.verdict(name, check_level=CheckLevel.L3, hard=True)])


def shadow(name: str, prompt: int, outcome: str) -> Step:
    """A verdict of the shadow."""
    return lambda w: w.deliver(
        [w.verdict(name, check_level="L4", prompt_fingerprint=f"p{prompt}", outcome=outcome)]
    )


def suite(name: str, outcome: str) -> Step:
    """A suite that somebody published by hand."""
    return lambda w: w.deliver([w.verdict(name, check_level="L5", outcome=outcome)])


def stale(name: str) -> Step:
    """A proof against an earlier life."""
    return lambda w: w.deliver(
        [w.verdict(name, check_level=CheckLevel.L3, hard=True, incarnation=0)]
    )


def burst(name: str) -> Step:
    """Six failures of six prompts at once, delivered twice."""

    def step(world: World) -> None:
        batch = [world.verdict(name) for _ in range(6)]
        world.deliver(batch + batch)
        world.deliver(batch)

    return step


def ask(name: str, action: str) -> Step:
    """An operator's request."""

    def step(world: World) -> None:
        request = Asked.model_validate(
            {
                "timestamp": world.now,
                "instance_id": name,
                "requested_by": "alice",
                "action": action,
            }
        )
        world._apply(name, request)

    return step


def pause(action: str) -> Step:
    """An operator stops or resumes acting."""
    return lambda w: w.fleet.pause(
        Asked.model_validate({"timestamp": w.now, "requested_by": "alice", "action": action})
    )


def reset_brake(backlog: str) -> Step:
    """An operator takes the fleet brake off, if it is on."""

    def step(world: World) -> None:
        world.reset_brake(backlog)

    return step


def spoil(name: str, *, good: bool) -> Step:
    """The engine goes bad, or well again."""

    def step(world: World) -> None:
        world.engines[name].good = good

    return step


NAME = st.sampled_from(NAMES)
ACTIONS = st.sampled_from(
    ["drain", "eject", "restart", "repair", "replace", "release", "quarantine"]
)
BACKLOGS = st.sampled_from(["skip", "replay"])
OUTCOMES = st.sampled_from(["failed", "failed", "failed", "passed"])
STEPS = st.one_of(
    st.builds(soft, NAME, st.integers(0, 8)),
    st.builds(proof, NAME),
    st.builds(shadow, NAME, st.integers(0, 8), OUTCOMES),
    st.builds(suite, NAME, OUTCOMES),
    st.builds(stale, NAME),
    st.builds(burst, NAME),
    st.builds(ask, NAME, ACTIONS),
    st.builds(pause, st.sampled_from(["pause", "resume"])),
    st.builds(reset_brake, BACKLOGS),
    st.builds(lambda n, good: spoil(n, good=good), NAME, st.booleans()),
    st.builds(lambda n: lambda w: w.crash(n), NAME),
    st.builds(lambda n: lambda w: w.restart_by_itself(n), NAME),
    st.builds(lambda n: lambda w: w.observe(n), NAME),
    st.builds(lambda n, o: lambda w: w.obey(n, o), NAME, st.sampled_from(ReportOutcome)),
    st.builds(lambda n: lambda w: w.answer_probes(n), NAME),
    st.builds(lambda s: lambda w: w.wait(s), st.sampled_from([1, 3, 10, 21, 130, 700])),
)


REPAIRING = parse_policy("[defaults.repair]\nenabled = true\nconditions = ['A','B','C','D']\n")


TOUCHY = parse_policy(
    "[defaults.fleet_brake]\nmin_accused = 1\nmax_accused_share = 0.3\nwindow_s = 1000\n"
)
"""One accusation in three makes the fleet brake fall."""
FLAPPING = parse_policy("[defaults.flap]\nout_count = 2\n")
"""The second time out within an hour ends in quarantine."""
UNUSUAL_RULES = """
[playbooks.thorough]
steps = ["shift", "eject", "confirm", "repair", "replace"]
[playbooks.gentle]
steps = ["drain", "replace"]
[playbooks.last]
steps = ["eject", "repair", "stop"]
[defaults.condition_a]
playbook = "thorough"
[defaults.condition_b]
playbook = "gentle"
[defaults.condition_c]
playbook = "tell"
[defaults.condition_d]
playbook = "last"
"""
UNUSUAL = parse_policy(UNUSUAL_RULES)
"""Every condition is answered by other steps than the shipped ones."""
RULES = st.sampled_from([Policy(), REPAIRING, TOUCHY, FLAPPING, UNUSUAL])


def played(steps: list[Step], policy: Policy | None = None) -> World:
    """Return a pool after some steps; the world checks each of them."""
    world = World(NAMES, policy)
    world.start_up()
    for step in steps:
        step(world)
    return world


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=40), RULES, BACKLOGS)
def test_every_incident_ends(steps: list[Step], policy: Policy, backlog: str) -> None:
    """With everybody at work, a person too; floor, brake and commands are checked on the way."""
    world = played(steps, policy)
    pause("resume")(world)
    world.settle(3 * 3600, backlog=backlog)
    assert world.open_incidents() == []
    assert set(world.states().values()) <= {S.HEALTHY, S.SUSPECT, S.QUARANTINED}


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, max_size=40), RULES, BACKLOGS)
def test_every_incident_ends_without_executor_and_agents(
    steps: list[Step], policy: Policy, backlog: str
) -> None:
    """Even when nobody obeys and nobody answers; only the fleet brake waits for a person."""
    world = played(steps, policy)
    world.settle(5000, obeying=False, backlog=backlog)
    assert world.open_incidents() == []


FAILURES = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 9), st.sampled_from([CheckLevel.L1, "L2"])),
    min_size=1,
    max_size=24,
)


def delivered(batches: list[list[Verdict]]) -> World:
    """Return a pool after some batches at one moment."""
    world = World(NAMES)
    world.start_up()
    world.now = NOW + timedelta(seconds=300)
    for batch in batches:
        world.deliver(batch)
    return world


def verdicts(failures: list[tuple[int, int, CheckLevel]]) -> list[Verdict]:
    """Return failures of one life, each with an id of its own."""
    return [
        Verdict(
            message_id=f"m{number}",
            timestamp=NOW + timedelta(seconds=1 + second),
            instance_id="a",
            incarnation=1,
            request_id=f"r{number}",
            check_level=level,
            prompt_fingerprint=f"p{prompt}",
        )
        for number, (second, prompt, level) in enumerate(failures)
    ]


def split(items: list[Verdict], at: int) -> list[list[Verdict]]:
    """Return the items in batches of one size."""
    return [items[start : start + at] for start in range(0, len(items), at)]


@settings(max_examples=100, deadline=None)
@given(FAILURES, st.randoms(use_true_random=False), st.integers(1, 7), st.integers(1, 7))
def test_shuffles_duplicates_and_batches_change_nothing(
    failures: list[tuple[int, int, CheckLevel]], random: object, one: int, other: int
) -> None:
    """The same failures lead to the same state, whatever the broker does to them."""
    in_order = verdicts(failures)
    mixed = in_order + in_order[::2]
    getattr(random, "shuffle")(mixed)  # noqa: B009 (hypothesis' Random has no type here)
    first, second = delivered(split(in_order, one)), delivered(split(mixed, other))
    assert first.states() == second.states()
    assert len(first.incidents) == len(second.incidents)
    penalties = [world.fleet.records["a"].penalty for world in (first, second)]
    assert penalties[0] == pytest.approx(penalties[1])


def test_the_loop_closes_after_condition_a() -> None:
    """Detect, isolate, repair, prove, readmit: one restart and nobody asked."""
    world = World(NAMES)
    world.start_up()
    burst("a")(world)
    assert world.states()["a"] is S.DRAINING
    world.obey("a")
    world.obey("a")
    assert world.states()["a"] is S.PROBATION
    world.answer_probes("a")
    assert world.states() == dict.fromkeys(NAMES, S.HEALTHY)
    [incident] = world.incidents.values()
    assert (incident.status, incident.reason) == ("resolved", "repaired")
    assert world.restarts == {"a": 1}


def test_an_engine_that_stays_bad_is_quarantined() -> None:
    """Three restarts within the hour, then a person."""
    world = World(NAMES)
    world.start_up()
    world.engines["a"].good = False
    proof("a")(world)
    world.settle(600)
    assert world.states()["a"] is S.QUARANTINED
    assert world.restarts["a"] == 3


def test_one_bad_prompt_costs_no_restart() -> None:
    """A prompt that makes every engine emit NaN cannot restart the fleet: the brake falls."""
    world = World(NAMES)
    world.start_up()
    for name in NAMES:
        proof(name)(world)
    assert world.braked
    world.settle(700, step_s=5)
    world.reset_brake("skip")
    world.wait(400)
    assert world.states() == dict.fromkeys(NAMES, S.HEALTHY)
    assert world.restarts == {}
    reasons = {incident.reason for incident in world.incidents.values()}
    assert "refuted" in reasons


def test_the_second_proof_on_the_same_life_restarts() -> None:
    """A fault that hides from the probes costs one more bad answer."""
    world = World(NAMES)
    world.start_up()
    proof("a")(world)
    world.settle(60, step_s=5)
    assert world.restarts == {}
    proof("a")(world)
    assert world.states()["a"] is S.RESTARTING


def test_a_pool_of_one_is_never_emptied() -> None:
    """The incident is held, told to people, and expires."""
    world = World(("a",))
    world.start_up()
    proof("a")(world)
    assert world.states()["a"] is S.SUSPECT or world.states()["a"] is S.HEALTHY
    assert [incident.status for incident in world.open_incidents()] == ["held"]
    world.settle(601, step_s=1)
    assert [incident.status for incident in world.incidents.values()] == ["expired"]


def test_a_pool_may_be_allowed_to_empty_itself() -> None:
    """Better no answer than garbage: the owner's choice."""
    rules = "[defaults.ejection]\nmin_in_rotation = 0\nmax_out_share = 1.0\n"
    world = World(("a",), parse_policy(rules))
    world.start_up()
    proof("a")(world)
    assert world.states()["a"] is S.EJECTED
    assert isinstance(world.policy, Policy)
