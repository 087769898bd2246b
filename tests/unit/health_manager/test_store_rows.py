"""Rows and records: what is written is read again."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gatemesh_common.messages import (
    Action,
    GateCounts,
    InstanceState,
    ReportOutcome,
    RequestRejected,
    Span,
    StepFinished,
    TelemetryWindow,
)
from gatemesh_health_manager.record import CommandEnd, InstanceRecord, Transition
from gatemesh_health_manager.states import Trigger
from gatemesh_health_manager.store_rows import (
    VERDICT_NAMES,
    command_end_row,
    command_row,
    incident_row,
    instance_row,
    read_incident,
    read_instance,
    refused_row,
    rejected_row,
    report_row,
    request_row,
    step_row,
    telemetry_row,
    transition_row,
    verdict_values,
)
from gatemesh_health_manager.streaks import NO_STREAKS, Streak, Streaks

from .samples import NOW, asked, at, case, flight, incident, record, report, ticket, verdict

S = InstanceState
FULL = record(
    S.EJECTED,
    penalty=12.5,
    evidence_since=at(-9),
    refuted_at=at(-8),
    fence=3,
    wanted=Action.RESTART,
    wanted_from=at(4),
    target_life="life-0",
    flight=flight(Action.EJECT),
    ticket=ticket("confirm"),
    due_at=at(20),
    restarts=(at(-50), at(-40)),
    incident=incident(),
    streaks=Streaks(c=Streak(at(-7), ((at(-6), "p1"), (at(-5), "p\u00e9")))),
    repaired_at=at(-4),
    ticket_until=at(100),
    closed_tickets=("ticket-0",),
    probed_at=at(-3),
    probe_from=at(27),
    shift_until=at(10),
)


@pytest.mark.parametrize("about", [FULL, record(), record(S.STARTING, base_url=None)])
def test_an_instance_is_read_as_it_was_written(about: InstanceRecord) -> None:
    """Every field comes back."""
    assert read_instance(instance_row(about), about.incident) == about


def test_a_row_of_an_earlier_release_has_no_streaks() -> None:
    """The column's default is an empty object."""
    row = instance_row(record()) | {"streaks": {}}
    assert read_instance(row, None).streaks == NO_STREAKS


def test_every_field_of_an_instance_is_stored() -> None:
    """A new field cannot be forgotten: this record has no default left."""
    bare = replace(FULL, incident=None)
    assert read_instance(instance_row(bare), None) == bare


def test_an_incident_is_read_as_it_was_written() -> None:
    """Every field comes back."""
    row = incident_row(incident(), record(), "p1")
    assert read_incident(row) == incident()
    told = incident(status="held", would="drain, restart")
    assert read_incident(incident_row(told, record(), "p1")) == told
    assert (row["instance_id"], row["policy_version"]) == ("engine-0", "p1")


def test_a_verdict_takes_on_what_it_does_not_name() -> None:
    """Pool and life of the instance."""
    given = verdict(incarnation=None, pool=None, details={"n": 1}, span=Span(char_start=3))
    row = dict(zip(VERDICT_NAMES, verdict_values(given, record(), at(5)), strict=True))
    assert (row["pool"], row["incarnation"], row["received_at"]) == ("default", 1, at(5))
    assert json.loads(str(row["span"])) == {"char_start": 3}
    assert json.loads(str(row["details"])) == {"n": 1}


def test_a_verdict_keeps_the_life_it_names() -> None:
    """An earlier life's evidence is stored as such."""
    row = dict(
        zip(VERDICT_NAMES, verdict_values(verdict(incarnation=0), record(), NOW), strict=True)
    )
    assert row["incarnation"] == 0


def test_commands_begin_in_flight_and_end_once() -> None:
    """Their rows say so."""
    one = case(record(S.DRAINING))
    one.want(Action.DRAIN)
    row = command_row(one.decision().commands[0], NOW)
    assert (row["status"], row["ended_at"], row["action"]) == ("in_flight", None, "drain")
    ended = command_end_row(CommandEnd("c", "expired", "late"), at(3))
    assert ended == {
        "the_command": "c",
        "status": "expired",
        "reason": "late",
        "ended_at": at(3),
    }


def test_a_transition_row_names_the_policy() -> None:
    """Every decision can be explained by the rules of its time."""
    step = Transition(S.HEALTHY, S.EJECTED, Trigger.PROVEN, 1, "incident-1", 60.0)
    row = transition_row(step, record(), "p1", NOW)
    assert (row["before_state"], row["trigger"], row["after_state"]) == (
        "healthy",
        "proven",
        "ejected",
    )
    assert row["policy_version"] == "p1"


def test_a_request_row_says_what_became_of_it() -> None:
    """An empty refusal means that it was followed."""
    assert request_row(asked("drain"), "", NOW)["outcome"] == "accepted"
    refused = request_row(asked("drain"), "no room", NOW)
    assert (refused["outcome"], refused["why"]) == ("refused", "no room")


def test_plain_records_are_written_as_they_are() -> None:
    """Reports, steps, refused client requests and telemetry."""
    common: dict[str, Any] = {"timestamp": NOW, "instance_id": "e", "pool": "p"}
    step = StepFinished(**common, command_id="c", incarnation=1, step="stopped", duration_s=2)
    refused = RequestRejected(**common, agent_id="a", request_id="r", cause="draining")
    window = TelemetryWindow(
        **common,
        agent_id="a",
        incarnation=1,
        window_start=NOW,
        window_end=at(5),
        gates={"L1": GateCounts(passed=2)},
    )
    assert step_row(step)["step"] == "stopped"
    assert rejected_row(refused)["cause"] == "draining"
    assert telemetry_row(window)["gates"]["L1"]["passed"] == 2
    assert telemetry_row(window)["first_tokens"] is None
    streamed = window.model_copy(update={"first_tokens": {26: 2}})
    assert telemetry_row(streamed)["first_tokens"] == {"26": 2}
    assert report_row(report(Action.DRAIN))["outcome"] == "succeeded"


def test_a_refusal_keeps_word_and_detail_apart() -> None:
    """People count by the word; what a stranger wrote fits the table."""
    refused = report(
        Action.DRAIN,
        ReportOutcome.REFUSED,
        reason="unknown_key: '0: 1'",
        fence=10**30,
        command_id="a\x00",
        ends_command=False,
    )
    row = refused_row(refused, at(9))
    assert (row["reason"], row["detail"]) == ("unknown_key", "'0: 1'")
    assert (row["fence"], row["command_id"], row["ends_command"]) == (10**30, "a\ufffd", False)
    assert row["received_at"] == at(9)
    assert refused_row(report(Action.DRAIN, reason="expired"), at(9))["detail"] == ""
