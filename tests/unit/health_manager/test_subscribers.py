"""The wiring: each queue's messages find their way into the store."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from faststream import AckPolicy
from faststream.rabbit import RabbitBroker, RabbitRouter, TestRabbitBroker
from faststream.rabbit.subscriber.usecase import RabbitSubscriber

from gatemesh_common.broker import PROOFS, VERDICTS, WORK_QUEUES, topic
from gatemesh_common.messages import (
    Action,
    ActionRequest,
    Capture,
    InstanceObserved,
    Message,
    RequestRejected,
    StepFinished,
    TelemetryWindow,
    TrialRequest,
)
from gatemesh_health_manager.batcher import Batcher
from gatemesh_health_manager.store import Store
from gatemesh_health_manager.subscribers import (
    QUEUES,
    event_router,
    record_router,
)

from .samples import NOW, asked, at, report, seen


class Kept:
    """Keeps what would be stored, with the way it came."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, Message]] = []
        self.senders: list[str | None] = []

    async def apply_event(self, queue: str, event: Message) -> None:
        """Keep a report or an observation."""
        self.messages.append((queue, event))

    async def apply_request(self, queue: str, request: Message, user: str | None) -> None:
        """Keep a request and its sender."""
        self.messages.append((queue, request))
        self.senders.append(user)

    apply_trial = apply_request

    async def submit(self, message: Message) -> None:
        """Keep what goes through a batcher."""
        self.messages.append(("batch", message))


def routers(kept: Kept) -> Sequence[RabbitRouter]:
    """Return every router of the manager over one keeper."""
    batcher = cast(Batcher[Any], kept)
    return (
        event_router(cast(Store, kept)),
        record_router(batcher, batcher, batcher, batcher),
    )


COMMON: dict[str, Any] = {"timestamp": NOW, "instance_id": "e", "pool": "p", "incarnation": 1}
REQUEST = ActionRequest.model_validate(asked("drain").model_dump())
TRIAL = TrialRequest.model_validate(asked("drain").model_dump())
MESSAGES: list[Message] = [
    report(Action.DRAIN),
    seen(),
    REQUEST,
    TRIAL,
    StepFinished(**COMMON, command_id="c", step="stopped"),
    TelemetryWindow(**COMMON, agent_id="a", window_start=NOW, window_end=at(1)),
    RequestRejected(**COMMON, agent_id="a", request_id="r", cause="draining"),
    Capture.model_validate(
        COMMON
        | {"agent_id": "a", "request_id": "r", "verdict_id": "v"}
        | {"check_level": "L1", "reason": "empty"}
    ),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda it: type(it).__name__)
async def test_a_message_reaches_the_store_once(message: Message) -> None:
    """Whatever words its key ends with."""
    kept = Kept()
    broker = RabbitBroker()
    for router in routers(kept):
        broker.include_router(router)
    async with TestRabbitBroker(broker):
        await broker.publish(
            message.model_dump(mode="json"), message.key(), exchange=topic(message.exchange)
        )
    [(_, got)] = kept.messages
    assert got == message


@pytest.mark.parametrize("request_", [REQUEST, TRIAL], ids=lambda it: type(it).__name__)
@pytest.mark.parametrize("user", ["alice", None])
async def test_a_request_comes_with_its_sender(request_: Message, user: str | None) -> None:
    """The property that the broker checks, not what the body says."""
    kept = Kept()
    broker = RabbitBroker()
    for router in routers(kept):
        broker.include_router(router)
    body = request_.model_dump(mode="json") | {"proven_user": "root", "user_id": "root"}
    async with TestRabbitBroker(broker):
        await broker.publish(body, request_.key(), exchange=topic(request_.exchange), user_id=user)
    assert kept.senders == [user]


def test_every_subscriber_acknowledges_after_the_commit() -> None:
    """And rejects what fails, so that the broker keeps it."""
    subscribers = [s for router in routers(Kept()) for s in router.subscribers]
    names = {s.queue.name for s in subscribers if isinstance(s, RabbitSubscriber)}
    assert names == {queue.name for queue in QUEUES if queue not in (VERDICTS, PROOFS)}
    assert {s.ack_policy for s in subscribers} == {AckPolicy.REJECT_ON_ERROR}


def test_every_queue_of_the_manager_is_read() -> None:
    """None of them fills up."""
    named = {queue for queue in WORK_QUEUES if queue.name.startswith("health_manager.")}
    assert set(QUEUES) == named
    assert InstanceObserved in {type(message) for message in MESSAGES}
