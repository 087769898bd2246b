"""Reading a verdict's body; queues, batches and acknowledgements are tested on a real broker."""

import json
from collections.abc import Sequence
from typing import cast

import pytest

from gatemesh_common.consuming import reason_of
from gatemesh_common.database import DataRefusedError
from gatemesh_common.errors import BrokerUnavailableError
from gatemesh_common.messages import Outcome, Verdict
from gatemesh_common.publisher import Publisher
from gatemesh_health_manager.deliveries import Deliveries, Delivery
from gatemesh_health_manager.intake import UNREADABLE, Intake, is_proof, read_verdict

from .samples import verdict
from .test_deliveries import sent

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


class Rejecting:
    """Stands for the deliveries of a queue; keeps what was rejected."""

    def __init__(self) -> None:
        self.rejected: list[int] = []
        self.acknowledged: list[int] = []

    async def reject(self, tag: int) -> None:
        """Keep a tag."""
        self.rejected.append(tag)

    async def acknowledge(self, tag: int) -> None:
        """Keep a tag."""
        self.acknowledged.append(tag)


class Refusing:
    """Stands for a broker that takes no dead letters."""

    async def publish_raw(self, *_: object, **__: object) -> None:
        """Refuse it."""
        raise BrokerUnavailableError("full")


async def test_poison_that_cannot_be_copied_is_left_to_the_broker() -> None:
    """It ends no manager, and the others of its batch are applied."""
    applied: list[Verdict] = []

    async def apply(verdicts: Sequence[Verdict]) -> None:
        applied.extend(verdicts)

    intake = Intake("amqp://nowhere", "q", apply, cast(Publisher, Refusing()))
    source, good = Rejecting(), verdict()
    bodies = ((7, b"{no json"), (8, good.model_dump_json(exclude_none=True).encode()))
    batch = [Delivery(tag, body, sent(tag, body)) for tag, body in bodies]
    await intake._settle(cast(Deliveries, source), batch)
    assert (source.rejected, source.acknowledged, applied) == ([7], [8], [good])


async def test_of_many_refused_together_only_the_guilty_one_fails() -> None:
    """In few tries, and the others in their order."""
    tries: list[int] = []
    applied: list[str] = []

    async def apply(verdicts: Sequence[Verdict]) -> None:
        tries.append(len(verdicts))
        names = [one.message_id for one in verdicts]
        if "m13" in names:
            raise DataRefusedError("the database refuses it")
        applied.extend(names)

    intake = Intake("amqp://nowhere", "q", apply, cast(Publisher, Refusing()), 99)
    source = Rejecting()
    bodies = [
        verdict(message_id=f"m{n}").model_dump_json(exclude_none=True).encode() for n in range(64)
    ]
    wire = [Delivery(n, body, sent(n, body)) for n, body in enumerate(bodies)]
    await intake._settle(cast(Deliveries, source), wire)
    assert applied == [f"m{n}" for n in range(64) if n != 13]
    assert (source.rejected, source.acknowledged, len(tries)) == ([13], [63], 13)


async def test_a_proof_waits_for_nothing_that_is_only_counted() -> None:
    """It is committed first, however many came before it; all are acknowledged at the end."""
    applied: list[list[str]] = []
    source = Rejecting()

    async def apply(verdicts: Sequence[Verdict]) -> None:
        assert source.acknowledged == []
        applied.append([one.message_id for one in verdicts])

    intake = Intake("amqp://nowhere", "q", apply, cast(Publisher, Refusing()), 99)
    said = [verdict(message_id=f"m{n}", hard=n in {2, 4}) for n in range(5)]
    bodies = [one.model_dump_json(exclude_none=True).encode() for one in said]
    await intake._settle(
        cast(Deliveries, source),
        [Delivery(n, body, sent(n, body)) for n, body in enumerate(bodies)],
    )
    assert applied == [["m2", "m4"], ["m0", "m1", "m3"]]
    assert source.acknowledged == [4]


def test_a_check_that_passed_is_no_proof() -> None:
    """Not even one that could have proven something."""
    assert not is_proof(verdict(outcome=Outcome.PASSED, hard=True))
    assert is_proof(verdict(hard=True))
