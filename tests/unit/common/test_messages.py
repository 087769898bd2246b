"""Every class that crosses the broker, against samples of its wire format."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gatemesh_common.messages import (
    COMMAND,
    MESSAGES,
    ActionRequest,
    InstanceCommand,
    InstanceState,
    Message,
    Outcome,
    RoutedInstance,
    Verdict,
)

WIRE = Path(__file__).parents[2] / "data" / "wire"
SAMPLES = sorted(WIRE.glob("*.json"))
CLASSES = {kind.__name__: kind for kind in MESSAGES}
MINIMAL = json.loads((WIRE / "Verdict.v1.minimal.json").read_text())


def class_of(sample: Path) -> type[Message]:
    """Return the class that a sample is named after."""
    return CLASSES[sample.name.split(".")[0]]


def test_every_class_has_a_sample() -> None:
    """Consumers in other languages are tested with them too."""
    assert {class_of(sample) for sample in SAMPLES} == set(MESSAGES)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda it: it.stem)
def test_a_sample_is_read_and_written_the_same(sample: Path) -> None:
    """What an earlier release published is understood, and published the same way."""
    text = sample.read_text()
    message = class_of(sample).model_validate_json(text)
    again = class_of(sample).model_validate_json(message.model_dump_json(exclude_none=True))
    assert again == message
    if "minimal" not in sample.name:
        written = message.model_dump(mode="json", exclude_none=True)
        assert {name: written[name] for name in json.loads(text)} == json.loads(text)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda it: it.stem)
def test_unknown_fields_are_ignored(sample: Path) -> None:
    """A newer publisher does not break an older reader."""
    data = json.loads(sample.read_text()) | {"invented_later": {"deep": [1]}}
    message = class_of(sample).model_validate_json(json.dumps(data))
    assert not hasattr(message, "invented_later")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda it: it.stem)
def test_messages_are_frozen(sample: Path) -> None:
    """Nobody changes what was said."""
    message = class_of(sample).model_validate_json(sample.read_text())
    with pytest.raises(ValidationError, match="frozen"):
        message.message_id = "another"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("sample", "key"),
    [
        ("Verdict.v1", "verdict.v1.l3.chat.engine-0"),
        ("DrainInstance.v1", "command.v1.drain.chat.engine-0"),
        ("ActionRequest.v1", "request.v1.restart.chat"),
        ("TrialRequest.v1", "trial.v1.restart.chat"),
        ("RoutingTable.v1", "routing.v1.chat"),
        ("RoutingApplied.v1", "applied.v1.chat.agent-0"),
        ("CommandReport.v1", "report.v1.chat.engine-0"),
    ],
)
def test_keys_let_consumers_choose(sample: str, key: str) -> None:
    """By kind, gate, action, pool and instance."""
    path = WIRE / f"{sample}.json"
    assert class_of(path).model_validate_json(path.read_text()).key() == key


def test_a_minimal_alert_is_a_soft_failure_of_the_present_life() -> None:
    """Plain fields are enough; a time without a zone is UTC, free text is kept."""
    verdict = Verdict.model_validate(MINIMAL)
    assert (verdict.outcome, verdict.hard, verdict.incarnation) == (Outcome.FAILED, False, None)
    assert verdict.timestamp == datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert verdict.details == {"text": "perplexity 5 times the usual"}
    assert verdict.type == "perplexity_spike"


def test_the_same_alert_has_the_same_id() -> None:
    """Published twice by hand, or delivered twice, it counts once."""
    shuffled = dict(reversed(MINIMAL.items()))
    one, other = Verdict.model_validate(MINIMAL), Verdict.model_validate(shuffled)
    third = Verdict.model_validate(MINIMAL | {"request_id": "req-2"})
    assert one.message_id == other.message_id != third.message_id


@pytest.mark.parametrize("missing", ["instance_id", "request_id", "timestamp", "check_level"])
def test_an_alert_must_name_what_it_is_about(missing: str) -> None:
    """The error names the field."""
    with pytest.raises(ValidationError, match=missing):
        Verdict.model_validate({k: v for k, v in MINIMAL.items() if k != missing})


@pytest.mark.parametrize(
    "change",
    [
        {"check_level": "L9"},
        {"instance_id": ""},
        {"instance_id": "x" * 201},
        {"incarnation": -1},
        {"timestamp": "yesterday"},
        {"timestamp": "0001-01-01T00:00:00+14:00"},
        {"details": 7},
    ],
    ids=str,
)
def test_a_wrong_field_is_refused(change: dict[str, Any]) -> None:
    """And named."""
    with pytest.raises(ValidationError, match=next(iter(change))):
        Verdict.model_validate(MINIMAL | change)


@pytest.mark.parametrize("no_object", ["text", 7, None, [MINIMAL]])
def test_what_is_no_object_is_refused(no_object: object) -> None:
    """Not a crash."""
    with pytest.raises(ValidationError):
        Verdict.model_validate(no_object)


def test_a_request_names_its_instance_unless_it_is_about_the_pool() -> None:
    """Pause and resume do not need one."""
    common = {"timestamp": "2026-05-01T12:00:00Z", "requested_by": "alice"}
    assert ActionRequest.model_validate(common | {"action": "pause"}).instance_id is None
    with pytest.raises(ValidationError, match="instance_id: required for action 'drain'"):
        ActionRequest.model_validate(common | {"action": "drain"})


def test_a_brake_is_reset_by_a_choice() -> None:
    """Whoever resets it says what becomes of what it held; it is never one instance's."""
    common = {"timestamp": "2026-05-01T12:00:00Z", "requested_by": "a", "action": "reset_brake"}
    assert ActionRequest.model_validate(common | {"backlog": "skip"}).backlog == "skip"
    for wrong in ({}, {"backlog": "some"}, {"backlog": "skip", "instance_id": "engine-0"}):
        with pytest.raises(ValidationError, match=r"backlog|instance_id"):
            ActionRequest.model_validate(common | wrong)


@pytest.mark.parametrize("action", ["drain", "eject", "restart", "readmit", "repair", "replace"])
def test_a_command_is_known_by_its_action(action: str) -> None:
    """One queue carries all of them."""
    [sample] = WIRE.glob(f"{action.title()}Instance.v1.json")
    command = COMMAND.validate_json(sample.read_text())
    assert type(command) is class_of(sample)
    assert isinstance(command, InstanceCommand)


@pytest.mark.parametrize("state", InstanceState)
@pytest.mark.parametrize("weight", [0.0, 0.1, 1.0])
def test_only_healthy_and_suspect_with_weight_are_in_rotation(
    state: InstanceState, weight: float
) -> None:
    """Two locks on one door."""
    row = RoutedInstance(
        instance_id="e", base_url="http://127.0.0.1:1", state=state, incarnation=1, weight=weight
    )
    serving = {InstanceState.HEALTHY, InstanceState.SUSPECT}
    assert row.in_rotation is (weight > 0 and state in serving)


def test_the_same_request_has_the_same_id() -> None:
    """An operator's request by hand, delivered twice, is followed once."""
    body = {"timestamp": "2026-05-01T12:00:00Z", "requested_by": "alice", "action": "pause"}
    one, other = (ActionRequest.model_validate(body) for _ in range(2))
    assert one.message_id == other.message_id
    assert ActionRequest.model_validate(body | {"pool": "chat"}).message_id != one.message_id
