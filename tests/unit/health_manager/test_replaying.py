"""Decided once more, it is decided alike."""

from dataclasses import replace
from datetime import timedelta

import pytest
from benchmarks.recorded import DAWN, MadeUpPool

from gatemesh_common.messages import Action
from gatemesh_health_manager.comparing import repeat
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.inputs import Input, InputKind, fleet_body, message_body
from gatemesh_health_manager.ordering import command_id
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.replaying import Replay, steps_of

from .samples import NOW, POLICY, S, at, incident, record, report

NAMES = ("engine-0", "engine-1", "engine-2")


@pytest.mark.parametrize("seed", range(6))
def test_made_up_lives_are_decided_alike(seed: int) -> None:
    """Engines go bad, exit and are asked about; every transition comes again, score and all."""
    pool = MadeUpPool(NAMES, seed=seed)
    pool.live(200, 10)
    found = repeat(pool.recorder.history(), DAWN)
    assert found.transitions > len(NAMES)
    assert (found.differences, found.changed_outside) == ([], [])


def test_a_replay_may_begin_in_the_middle() -> None:
    """With a kept fleet, and the failures before it."""
    pool = MadeUpPool(NAMES, seed=3)
    pool.live(200, 10)
    history = pool.recorder.history()
    kept = replace(history.begin, at=pool.now, body=fleet_body(pool.recorder.fleet))
    earlier = [(given.input.at, one) for given in history.inputs for one in given.verdicts]
    before, steps = len(pool.recorder.given), len(pool.recorder.steps)
    pool.live(200, 10)
    replay = Replay(history.policies)
    replay.begin(kept, earlier)
    made = []
    for given in pool.recorder.given[before:]:
        made += steps_of(replay.take(given.input, given.verdicts), given.input.at)
    assert made == pool.recorder.steps[steps:]
    assert made


def test_changes_by_hand_are_noticed() -> None:
    """A planned start forgets restarts; the next kept fleet shows it."""
    policy = Policy()
    replay = Replay({policy.version: policy})
    for score in (0.0, 0.0, 5.0):
        fleet = Fleet(policy, [], [record(penalty=score)])
        kept = Input(DAWN, InputKind.FLEET, policy.version, (), fleet_body(fleet), {})
        assert replay.changed_outside == {}
        replay.take(kept, ())
    seen = replay.changed_outside["engine-0"]
    assert (seen.at, seen.fields) == (DAWN, {"penalty": (0.0, 5.0)})


def test_what_follows_the_clock_is_no_change() -> None:
    """The weight and the last look differ from one kept fleet to the next; a new record is told."""
    policy = Policy()
    replay = Replay({policy.version: policy})
    lately = DAWN + timedelta(hours=1)
    seen = record(weight=0.5, observed_at=lately, penalty=1.0)
    for records in ([record(penalty=1.0)], [seen], [seen, record(instance_id="engine-1")]):
        kept = fleet_body(Fleet(policy, [], records))
        assert replay.changed_outside == {}
        replay.take(Input(lately, InputKind.FLEET, policy.version, (), kept, {}), ())
    told = {name: each.fields for name, each in replay.changed_outside.items()}
    assert told == {"engine-1": {"instance_id": (None, "engine-1")}}


def test_history_of_a_release_that_ordered_at_once_is_decided_alike() -> None:
    """It kept no tick at the end of a back-off; the report names the command by the same id."""
    policy = Policy()
    about = record(
        S.RESTARTING,
        wanted=Action.RESTART,
        wanted_from=at(5),
        target_life="life-1",
        incident=incident(),
    )
    sent = command_id(Action.RESTART, replace(about, fence=1))
    for named, after in ((sent, S.PROBATION), ("another", S.RESTARTING)):
        replay = Replay({policy.version: policy})
        body = fleet_body(Fleet(policy, [PoolRecord("default")], [about]))
        replay.take(Input(NOW, InputKind.FLEET, policy.version, (), body, {}), ())
        event = report(Action.RESTART, command_id=named, timestamp=at(9), life_id="life-2")
        kept = Input(at(9), InputKind.REPORT, policy.version, (), message_body(event), {})
        [decision] = replay.take(kept, ())
        assert decision.record.state is after


def test_other_rules_would_differ() -> None:
    """The comparison can fail: it is made with the rules of then."""
    pool = MadeUpPool(NAMES, seed=1, mishaps=False)
    pool.live(20, 10)
    pool.engines["engine-1"].failing_share = 0.9
    pool.live(60, 10)
    history = pool.recorder.history()
    assert repeat(history, DAWN).differences == []
    off = POLICY.condition_a.model_copy(update={"enabled": False})
    lax = Policy(defaults=POLICY.model_copy(update={"condition_a": off}))
    wrong = replace(history, policies=dict.fromkeys(history.policies, lax))
    assert [each.instance_id for each in repeat(wrong, DAWN).differences] == ["engine-1"]
