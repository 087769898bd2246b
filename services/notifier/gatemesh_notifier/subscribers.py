"""What the notifier reads from the broker."""

import logging

from faststream import AckPolicy
from faststream.rabbit import RabbitMessage, RabbitRouter
from pydantic import ValidationError

from gatemesh_common.broker import WorkQueue, broadcast_queue, topic, work_queue
from gatemesh_common.messages import (
    ALERTS,
    EVENTS,
    FleetBrakeChanged,
    IncidentChanged,
    StateChanged,
    Verdict,
)
from gatemesh_notifier import metrics
from gatemesh_notifier.desk import Desk
from gatemesh_notifier.facts import (
    AlertChoice,
    alert_fact,
    brake_fact,
    incident_fact,
    state_fact,
)

log = logging.getLogger(__name__)

INCIDENTS = WorkQueue("notifier.incidents", EVENTS, "incident.v1.#", one_reader=True)
BRAKES = WorkQueue("notifier.brakes", EVENTS, "brake.v1.#", one_reader=True)
STATES = WorkQueue("notifier.states", EVENTS, "state.v1.#", one_reader=True)
QUEUES = (INCIDENTS, BRAKES, STATES)
"""One reader each, so that a second notifier stands by instead of splitting the groups."""


def event_router(desk: Desk) -> RabbitRouter:
    """Tell of each event. The ack follows the delivery, so a crash redelivers."""
    router = RabbitRouter()
    policy = AckPolicy.REJECT_ON_ERROR

    @router.subscriber(work_queue(INCIDENTS), topic(EVENTS), ack_policy=policy, no_reply=True)
    async def on_incident(event: IncidentChanged) -> None:
        metrics.EVENTS.labels("incident").inc()
        await desk.tell(incident_fact(event))

    @router.subscriber(work_queue(BRAKES), topic(EVENTS), ack_policy=policy, no_reply=True)
    async def on_brake(event: FleetBrakeChanged) -> None:
        metrics.EVENTS.labels("brake").inc()
        await desk.tell(brake_fact(event))

    @router.subscriber(work_queue(STATES), topic(EVENTS), ack_policy=policy, no_reply=True)
    async def on_state(event: StateChanged) -> None:
        metrics.EVENTS.labels("state").inc()
        fact = state_fact(event)
        if fact is not None:
            await desk.tell(fact)

    return router


def alert_router(desk: Desk, choice: AlertChoice, process_id: str) -> RabbitRouter:
    """Mention alerts while they are fresh; the manager keeps them, so nothing is lost here."""
    router = RabbitRouter()
    queue = broadcast_queue(f"notifier.alerts.{process_id}", "#")

    @router.subscriber(queue, topic(ALERTS), ack_policy=AckPolicy.ACK_FIRST, no_reply=True)
    async def on_alert(message: RabbitMessage) -> None:
        try:
            verdict = Verdict.model_validate_json(message.body)
        except ValidationError:
            # The manager buries it; a second dead letter would say no more.
            metrics.EVENTS.labels("unreadable").inc()
            return
        metrics.EVENTS.labels("alert").inc()
        fact = alert_fact(verdict, choice)
        if fact is not None:
            desk.mention(fact)

    return router
