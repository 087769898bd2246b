"""The smallest consumer service: prints every incident. Needs GATEMESH_AMQP_URL."""

import asyncio
import os

from faststream import AckPolicy

from gatemesh_common.broker import WorkQueue, topic, work_queue
from gatemesh_common.consuming import consumer_broker
from gatemesh_common.messages import EVENTS, IncidentChanged
from gatemesh_common.publisher import Publisher
from gatemesh_common.running import declare_when_up

QUEUE = WorkQueue("example.incidents", EVENTS, "incident.v1.#")


async def main() -> None:
    """Read until stopped; each incident is acknowledged once it is printed."""
    async with Publisher(os.environ["GATEMESH_AMQP_URL"], "example") as publisher:
        await declare_when_up(publisher, (QUEUE,))
        broker = consumer_broker(os.environ["GATEMESH_AMQP_URL"], "example", publisher)

        @broker.subscriber(work_queue(QUEUE), topic(EVENTS), ack_policy=AckPolicy.REJECT_ON_ERROR)
        async def on_incident(it: IncidentChanged) -> None:
            print(it.status, it.instance_id, it.condition, it.reason, flush=True)  # noqa: T201

        await broker.start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
