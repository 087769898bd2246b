"""Reading a verdict's body; queues, batches and acknowledgements are tested on a real broker."""

import json

import pytest

from gatemesh_common.consuming import reason_of
from gatemesh_common.messages import Verdict
from gatemesh_health_manager.intake import UNREADABLE, read_verdict

from .samples import verdict

MINIMAL = {
    "instance_id": "engine-0",
    "request_id": "r1",
    "timestamp": "2026-05-01T12:00:00",
    "check_level": "L2",
    "details": "seen by hand",
}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"details": {"half": "\ud800", "deep": [1, {"a": None}]}},
        {"details": {"score": float("nan")}, "score": 1e300},
        {"timestamp": 1777636800, "choice": 3, "hard": True, "newer": "unknown"},
        {"span": {"char_start": 1}, "message_id": None},
    ],
    ids=["minimal", "half", "nan", "number", "span"],
)
def test_the_quick_way_reads_what_the_thorough_one_does(fields: dict[str, object]) -> None:
    """Field by field, the id made from the content too."""
    body = json.dumps(MINIMAL | fields)
    assert repr(read_verdict(body.encode())) == repr(Verdict.model_validate(json.loads(body)))


def test_what_agents_send_comes_back() -> None:
    """As it was."""
    said = verdict(details={"rule": "run"}, score=0.5)
    assert read_verdict(said.model_dump_json(exclude_none=True).encode()) == said


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{no json", "body: no valid JSON"),
        (b"\xff\xfe", "body: no valid"),
        (json.dumps({**MINIMAL, "check_level": "L9"}).encode(), "check_level: "),
        (json.dumps({**MINIMAL, "choice": -1}).encode(), "choice: "),
        (b"[1]", "valid dictionary"),
        (b"", "body: no valid JSON"),
        (b"[" * 100_000, "RecursionError"),
    ],
)
def test_what_is_none_is_named(body: bytes, reason: str) -> None:
    """For whoever looks through the dead letters."""
    with pytest.raises(UNREADABLE) as refused:
        read_verdict(body)
    assert reason in reason_of(refused.value)
