"""Explanations in words with numbers."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gatemesh_ctl.explain_facts import Facts
from gatemesh_ctl.explaining import (
    brakes,
    command_words,
    ending,
    evidence_of,
    explain,
    fleet_brake,
    rule_words,
    score_words,
    states,
)
from gatemesh_ctl.store import Row
from gatemesh_health_manager.policy import parse_policy

OPENED = datetime(2026, 5, 1, 12, tzinfo=UTC)
POLICY = parse_policy("""
[[defaults.own_conditions]]
name = "leaks"
kind = "consecutive"
levels = ["L5"]
consecutive = 2
""")
RULES = POLICY.defaults.model_dump(mode="json")


def after(seconds: float) -> datetime:
    """Return a moment beside the opening."""
    return OPENED + timedelta(seconds=seconds)


def incident(condition: str, **facts: object) -> Row:
    """Return an incident as its view shows it."""
    return {
        "incident_id": "i-1",
        "instance_id": "engine-0",
        "pool": "chat",
        "incarnation": 2,
        "condition": condition,
        "status": "resolved",
        "cause": "6 failures of 6 prompts, last: repetition",
        "reason": "repaired",
        "playbook": "restart",
        "steps": ["drain", "restart"],
        "opened_at": OPENED,
        "ended_at": after(12.5),
        "duration_s": 12.5,
        "policy_version": "abc",
        "mode": "act",
        "would": "",
        "core_dump": "",
        **facts,
    }


def verdict(at_s: float, level: str = "L1", prompt: str = "", **facts: object) -> Row:
    """Return a failure as its views show it."""
    return {
        "timestamp": after(at_s),
        "counted_at": after(at_s),
        "received_at": after(at_s),
        "check_level": level,
        "outcome": "failed",
        "reason": "repetition",
        "hard": False,
        "score": 0.93,
        "threshold": 0.4,
        "request_id": f"r{at_s}",
        "prompt_key": prompt or f"p{at_s}",
        "attribution": "instance",
        "span": {"char_start": 12, "char_end": 40},
        "details": {},
        **facts,
    }


def command(action: str, issued_s: float, **facts: object) -> Row:
    """Return a command as its view shows it."""
    return {
        "action": action,
        "fence": 3,
        "status": "succeeded",
        "reason": "",
        "issued_at": after(issued_s),
        "available_at": after(issued_s),
        "ended_at": after(issued_s + 3),
        "duration_s": 2.5,
        "killed": False,
        "steps": [
            {"step": "taken_out", "duration_s": 0.01},
            {"step": "stopped", "duration_s": 2.1},
        ],
        **facts,
    }


def facts(condition: str, *verdicts: Row, rules: Mapping[str, Any] = RULES, **more: Any) -> Facts:
    """Return what is known of an incident."""
    known = {"braked": False, "braked_at": None, "brake_reason": "", "instances": 3}
    before = {"engine-0": "healthy", "engine-1": "healthy", "engine-2": "quarantined"}
    own = {"incident_id": "i-1", "instance_id": "engine-0", "condition": condition}
    return Facts(
        incident(condition),
        rules,
        pool=known,
        verdicts=verdicts,
        states_before=before,
        others=({**own, "opened_at": OPENED},),
        **more,
    )


def test_condition_a_goes_by_its_window_and_by_prompts() -> None:
    """One prompt counts once, a request's own fault and an old failure not at all."""
    counted = [verdict(-10.0 - number) for number in range(6, 0, -1)]
    known = facts(
        "A",
        verdict(-61),
        *counted,
        verdict(-5, prompt="p-16.0"),
        verdict(-4, attribution="request"),
        verdict(-3, "L4"),
        verdict(1),
    )
    assert evidence_of(known) == counted
    words = explain(known)["words"]["why"]
    assert "more than 5 failures of L1, L2 within 60 s, of at least 3 prompts" in words[1]
    assert words[2] == "Seen: 6 failures of 6 prompts (6 x repetition)."
    assert words[3] == "Playbook restart: drain, restart."


def test_condition_b_goes_by_the_proof() -> None:
    """A hard failure, or a suite with an answer that only a broken engine gives."""
    proof = verdict(-1, "L3", hard=True, reason="nan_logits")
    assert evidence_of(facts("B", verdict(-2, "L3"), proof)) == [proof]
    suite = verdict(-1, "L5", details={"faults": {"sum": "nan_logits"}})
    assert evidence_of(facts("B", suite)) == [suite]
    assert evidence_of(facts("B", verdict(-1, "L5"))) == []


def test_what_a_graver_condition_broke_may_be_younger_than_the_incident() -> None:
    """It went on under a new heading."""
    proof = verdict(5, "L3", hard=True)
    assert evidence_of(facts("B", verdict(-2), proof)) == [proof]


@pytest.mark.parametrize(("condition", "level"), [("C", "L4"), ("D", "L5"), ("leaks", "L5")])
def test_a_row_begins_after_the_last_pass(condition: str, level: str) -> None:
    """Conditions C, D and own ones that count in a row."""
    passed = verdict(-50, level, outcome="passed")
    row = [verdict(-40, level), verdict(-30, level), verdict(-20, level)]
    assert evidence_of(facts(condition, verdict(-60, level), passed, *row)) == row


def test_every_rule_of_the_default_policy_has_words() -> None:
    """With its numbers."""
    assert rule_words("B", RULES["condition_b"]).startswith("one hard failure of L3")
    assert rule_words("C", RULES["condition_c"]) == (
        "3 failures of L4 in a row, of at least 3 prompts"
    )
    assert rule_words("D", RULES["condition_d"]) == "2 failures of L5 in a row"
    rate = {"name": "slow", "kind": "rate", "of": "tokens_per_s", "times_pool": 2.0, "reasons": []}
    assert rule_words("slow", rate) == "kind rate, of tokens_per_s, times_pool 2.0"
    assert "no longer stored" in rule_words("gone", {})


def test_scores_stand_against_their_thresholds() -> None:
    """With the factor, where one is beyond the other."""
    assert score_words(0.93, 0.4) == ", score 0.93, threshold 0.4 (2.33 times)"
    assert score_words(0.2, 0.7) == ", score 0.2, threshold 0.7"
    assert score_words(3, 0) == ", score 3, threshold 0"
    assert score_words(3, None) == ", score 3"
    assert score_words(None, 1) == ""


def test_each_brake_speaks_with_its_numbers() -> None:
    """Room, accused, times out, restarts, waiting."""
    done = (command("drain", 0.2), command("restart", 3, available_at=after(8)))
    restarts = (
        {"issued_at": after(-4000), "action": "restart"},
        {"issued_at": after(-10), "action": "restart"},
        {"issued_at": after(3), "action": "restart"},
    )
    told = "\n".join(brakes(facts("A", commands=done, restarts=restarts)))
    assert "Fleet brake: 1 of 3 accused within 300 s" in told
    assert "it was off" in told
    assert "2 of 3 served before; 1 would be left (at least 1) and 2 out" in told
    assert "there was no room" in told
    assert "accused 1 time within 3600 s; taken out 4 times" in told
    assert "Restart budget: 2 of 3 used within 3600 s, back-off 5 s." in told
    assert "drain was ordered 0.20 s after the opening" in told


@pytest.mark.parametrize(
    ("decided_s", "starts", "told"),
    [
        pytest.param(3.0, 1, "1 of 3 used within 3600 s, back-off 0 s.", id="first"),
        pytest.param(3.0, 2, "2 of 3 used within 3600 s, back-off 5 s.", id="second"),
        pytest.param(-600.0, 2, "2 of 3 used within 3600 s, back-off 5 s.", id="paused-besides"),
        pytest.param(8.4, 3, "3 of 3 used within 3600 s, back-off 0 s.", id="as-a-person-asked"),
    ],
)
def test_a_back_off_lies_between_decision_and_command(
    decided_s: float, starts: int, told: str
) -> None:
    """The transition tells when it was decided, the rule for how long it had to wait."""
    issued = ({"issued_at": after(8.4 - number), "action": "restart"} for number in range(starts))
    known = facts(
        "exit",
        commands=(command("restart", 8.4),),
        transitions=({"at": after(decided_s)}, {"at": after(30)}),
        restarts=tuple(issued),
    )
    assert f"Restart budget: {told}" in brakes(known)


def test_a_start_that_comes_first_may_have_waited_for_its_back_off() -> None:
    """An exit is answered by a restart and nothing before it."""
    known = facts(
        "exit",
        commands=(command("restart", 5.2),),
        transitions=({"at": OPENED},),
        restarts=tuple({"issued_at": after(at_s), "action": "restart"} for at_s in (-60, 5.2)),
    )
    told = "restart was ordered 5.2 s after the opening: it waited for its back-off (5 s)."
    assert brakes(known)[-1] == told


def test_a_wait_is_told_with_its_cause() -> None:
    """A shift of traffic is meant; anything else was a brake."""
    late = facts("C", commands=(command("drain", 10),))
    assert brakes(late)[-1].endswith("10.0 s after the opening: it was held.")
    shifted = replace(late, incident=incident("C", steps=["shift", "drain", "restart"]))
    assert "traffic was shifted away first (10 s)" in brakes(shifted)[-1]
    held = replace(facts("A"), incident=incident("A", status="held", ended_at=None))
    assert brakes(held)[-1] == "It is held: no command was sent."


def test_a_fallen_fleet_brake_is_told_with_its_moment() -> None:
    """And one that was on already."""
    known = facts("A")
    fell = {"braked": True, "braked_at": after(1), "brake_reason": "3 of 4", "instances": 4}
    assert "it fell at" in fleet_brake(replace(known, pool=fell))
    assert "3 of 4" in fleet_brake(replace(known, pool=fell))
    assert "it is on since" in fleet_brake(replace(known, pool={**fell, "braked_at": after(-9)}))


def test_observe_mode_says_what_would_be_done() -> None:
    """First of all."""
    told = replace(facts("A"), incident=incident("A", mode="observe", would="drain, restart"))
    assert brakes(told)[0] == "Observe mode: nothing is done; it would: drain, restart."


def test_a_command_is_told_with_each_step() -> None:
    """And how long each took."""
    words = command_words(command("drain", 0.25), OPENED)
    assert words == (
        "+0.25 s drain (fence 3): succeeded in 2.50 s; taken_out 0.01 s, stopped 2.10 s"
    )
    killed = command_words(
        command("drain", 0, killed=True, duration_s=None, steps=[], reason="late"), OPENED
    )
    assert "succeeded in 3.00 s; late; running requests outlasted" in killed
    flying = command("drain", 0, status="in_flight", duration_s=None, ended_at=None, steps=[])
    assert command_words(flying, OPENED) == "+0.00 s drain (fence 3): in_flight"


def test_states_are_told_with_their_stay() -> None:
    """All but the last, in which it may still be."""
    step = {"before_state": "healthy", "after_state": "draining", "trigger": "condemned"}
    back = {"before_state": "draining", "after_state": "restarting", "trigger": "drained"}
    known = facts(
        "A",
        transitions=(
            {**step, "at": OPENED, "score": 70.0},
            {**back, "at": after(2.5), "score": 70.5},
        ),
    )
    assert states(known) == [
        "+0.00 s healthy -> draining for 2.50 s (condemned, score 70.0)",
        "+2.50 s draining -> restarting (drained, score 70.5)",
    ]


def test_an_end_is_told_or_that_there_is_none_yet() -> None:
    """With the core dump, if one was taken."""
    assert ending(facts("A")) == "Resolved after 12.5 s: repaired."
    dumped = replace(facts("A"), incident=incident("A", core_dump="/dumps/1"))
    assert ending(dumped).endswith("Core dump: /dumps/1.")
    flying = replace(facts("A"), incident=incident("A", ended_at=None, status="open"))
    assert ending(flying) == "Not over: open for 12.5 s."


def test_an_operator_is_named_with_the_brokers_word() -> None:
    """No rule was broken."""
    asked = {"requested_by": "ann", "user_id": "ann1", "action": "drain", "reason": "noise"}
    known = facts("operator", requests=(asked,))
    why = explain(known)["words"]["why"]
    assert "an operator asked for it" in why[1]
    assert why[2] == "ann, the broker's user ann1 asked for drain, because: noise."


def test_rules_that_are_gone_leave_the_rest() -> None:
    """Somebody may have cleared the table."""
    known = facts("A", verdict(-1), rules={})
    explained = explain(known)
    assert explained["evidence"]["verdicts"] == []
    assert explained["words"]["brakes"] == ["The rules of that version are no longer stored."]
