"""The wiring between queues and the desk."""

import pytest
from faststream.rabbit import RabbitBroker, TestRabbitBroker
from pydantic import BaseModel
from tests.unit.notifier.parts import brake, incident, state, verdict

from gatemesh_common.broker import topic
from gatemesh_common.messages import ALERTS, EVENTS, Message
from gatemesh_notifier.desk import Desk
from gatemesh_notifier.facts import AlertChoice, Fact
from gatemesh_notifier.subscribers import QUEUES, alert_router, event_router


class Notes(Desk):
    """Keeps what is told."""

    def __init__(self) -> None:
        super().__init__(())
        self.words: list[str] = []

    async def tell(self, fact: Fact) -> None:
        """Keep the word."""
        self.words.append(fact.word)

    def mention(self, fact: Fact) -> None:
        """Keep the word."""
        self.words.append(fact.word)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (incident(), ["incident_open"]),
        (brake(), ["brake_fell"]),
        (state(), ["quarantined"]),
        (state(after="draining"), []),
    ],
)
async def test_events_reach_the_desk(event: Message, words: list[str]) -> None:
    """Each by its own queue."""
    desk = Notes()
    broker = RabbitBroker()
    broker.include_router(event_router(desk))
    async with TestRabbitBroker(broker):
        await broker.publish(event, exchange=topic(EVENTS), routing_key=event.key())
    assert desk.words == words


class Nonsense(BaseModel):
    """What somebody published by hand, with a fault."""

    instance_id: int = 7


@pytest.mark.parametrize(
    ("alert", "words"),
    [(verdict(), ["alert"]), (verdict(hard=False), []), (Nonsense(), [])],
)
async def test_alerts_are_mentioned(alert: BaseModel, words: list[str]) -> None:
    """What cannot be read is the manager's to bury."""
    desk = Notes()
    broker = RabbitBroker()
    broker.include_router(alert_router(desk, AlertChoice.HARD, "p1"))
    async with TestRabbitBroker(broker):
        await broker.publish(alert, exchange=topic(ALERTS), routing_key="verdict.v1.l3.chat.e")
    assert desk.words == words


def test_a_second_notifier_stands_by() -> None:
    """Two that share a queue would tell half a story each."""
    assert all(queue.one_reader for queue in QUEUES)
