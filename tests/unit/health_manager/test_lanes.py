"""Reading a verdict's body, and which lane it waits in."""

import json

import pytest

from gatemesh_common.consuming import reason_of
from gatemesh_common.messages import Outcome, Verdict
from gatemesh_health_manager.lanes import (
    LARGEST_BATCH,
    UNREADABLE,
    USUAL_BATCH,
    Lanes,
    read_verdict,
)

from .samples import verdict
from .test_intake import delivery

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


def test_a_check_that_passed_is_no_proof() -> None:
    """Not even one that could have proven something."""
    assert not verdict(outcome=Outcome.PASSED, hard=True).is_proof
    assert verdict(hard=True).is_proof


def test_proofs_wait_in_a_lane_of_their_own() -> None:
    """Each lane in its order."""
    lanes = Lanes(0)
    for n in range(6):
        lanes.take(delivery(n, verdict(message_id=f"m{n}", hard=n in {2, 4})))
    assert [one.delivery.tag for one in lanes.proofs.waiting] == [2, 4]
    assert [one.delivery.tag for one in lanes.others.waiting] == [0, 1, 3, 5]


def test_what_cannot_be_read_waits_with_the_ordinary() -> None:
    """With the reason."""
    lanes = Lanes(0)
    lanes.take(delivery(1, verdict())._replace(body=b"[1]"))
    [received] = lanes.others.waiting
    assert isinstance(received.said, ValueError)


@pytest.mark.parametrize(
    ("waiting", "taken"),
    [
        (3, 3),
        (USUAL_BATCH, USUAL_BATCH),
        (LARGEST_BATCH - 1, USUAL_BATCH),
        (LARGEST_BATCH, LARGEST_BATCH),
        (LARGEST_BATCH + 500, LARGEST_BATCH),
    ],
)
async def test_a_batch_is_large_only_where_the_manager_is_behind(waiting: int, taken: int) -> None:
    """A proof about the same pool waits for its transaction."""
    lanes = Lanes(0.001)
    for n in range(waiting):
        lanes.take(delivery(n, verdict(message_id=f"m{n}")))
    assert [one.delivery.tag for one in await lanes.others.batch()] == list(range(taken))
    assert len(lanes.others.waiting) == waiting - taken
