"""What becomes of a batch, and of both lanes; the rest is tested on a real broker."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import cast

import pytest

from gatemesh_common.database import DataRefusedError
from gatemesh_common.errors import BrokerUnavailableError
from gatemesh_common.messages import Verdict
from gatemesh_common.publisher import Publisher
from gatemesh_health_manager.deliveries import Deliveries, Delivery
from gatemesh_health_manager.intake import Intake
from gatemesh_health_manager.lanes import Lanes, receive

from .samples import verdict
from .test_deliveries import sent


class Rejecting:
    """Stands for the deliveries of a queue; keeps what was rejected."""

    def __init__(self) -> None:
        self.rejected: list[int] = []
        self.settled: list[int] = []
        self.is_lost = self.is_cancelled = False
        self.ended: Callable[[], None] = lambda: None

    async def reject(self, tag: int) -> None:
        """Keep a tag."""
        self.rejected.append(tag)

    async def cancel(self) -> None:
        """Nothing more comes."""
        self.is_cancelled = True
        self.ended()

    async def settle(self, tags: Iterable[int]) -> None:
        """Keep tags."""
        self.settled.extend(tags)


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
    batch = [receive(Delivery(tag, body, sent(tag, body))) for tag, body in bodies]
    await intake._settle(cast(Deliveries, source), batch)
    assert (source.rejected, source.settled, applied) == ([7], [7, 8], [good])


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
    wire = [delivery(n, verdict(message_id=f"m{n}")) for n in range(64)]
    await intake._settle(cast(Deliveries, source), [receive(one) for one in wire])
    assert applied == [f"m{n}" for n in range(64) if n != 13]
    assert (source.rejected, source.settled, len(tries)) == ([13], list(range(64)), 13)


async def test_a_proof_waits_for_no_batch_that_is_under_way() -> None:
    """It is committed beside it; a reader that is told to leave commits both first."""
    applied: list[list[str]] = []
    proven = asyncio.Event()

    async def apply(verdicts: Sequence[Verdict]) -> None:
        names = [one.message_id for one in verdicts]
        if "m0" in names:
            await asyncio.wait_for(proven.wait(), 5)
        applied.append(names)
        if "m2" in names:
            proven.set()

    intake, lanes = Intake("amqp://nowhere", "q", apply, cast(Publisher, Refusing()), 99), Lanes(0)
    intake._lanes = lanes
    source = Rejecting()
    source.ended = lanes.wake
    following = asyncio.create_task(intake._follow(cast(Deliveries, source), lanes))
    for n in range(4):
        lanes.take(delivery(n, verdict(message_id=f"m{n}", hard=n == 2)))
        await asyncio.sleep(0)
    await proven.wait()
    intake.leave()
    assert await asyncio.wait_for(following, 5)
    assert (applied[0], [name for names in applied[1:] for name in names]) == (
        ["m2"],
        ["m0", "m1", "m3"],
    )
    assert sorted(source.settled) == [0, 1, 2, 3]


async def test_a_lane_that_fails_ends_the_other() -> None:
    """The connection is then closed, and what was not settled comes again."""

    async def apply(verdicts: Sequence[Verdict]) -> None:
        if not verdicts[0].hard:
            await asyncio.Event().wait()

    intake, lanes = Intake("amqp://nowhere", "q", apply, cast(Publisher, Refusing()), 99), Lanes(0)
    source = Breaking()
    following = asyncio.create_task(intake._follow(cast(Deliveries, source), lanes))
    lanes.take(delivery(0, verdict()))
    lanes.take(delivery(1, verdict(message_id="m1", hard=True)))
    with pytest.raises(ConnectionError):
        await asyncio.wait_for(following, 5)


class Breaking(Rejecting):
    """Stands for a channel that is lost when it is told something."""

    async def settle(self, tags: Iterable[int]) -> None:
        """Fail."""
        raise ConnectionError("lost")


def delivery(tag: int, said: Verdict) -> Delivery:
    """Return a verdict as it comes."""
    body = said.model_dump_json(exclude_none=True).encode()
    return Delivery(tag, body, sent(tag, body))
