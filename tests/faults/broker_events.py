"""What may happen to the broker and to the way there."""

import asyncio
import os
import subprocess
from collections.abc import Sequence

from aio_pika.abc import AbstractQueue
from tests.faults.scenario import Play

from gatemesh_common.broker import UNSHARDED, VERDICTS
from gatemesh_common.publisher import Publisher
from gatemesh_mesh import rabbit

BLACK_HOLE_S = 30.0
MEMORY_ALARM_S = 60.0
DISK_ALARM_S = 10.0
CUTS = 5
BLOCKED_EVENTS = 5
MEMORY = ("set_vm_memory_high_watermark", "absolute")
DISK = ("set_disk_free_limit",)


async def kill_broker(it: Play) -> None:
    """The broker dies under load and is started again."""
    servers = it.site.servers
    await asyncio.to_thread(servers.kill_broker)
    await asyncio.to_thread(servers.start_broker)
    await it.is_cured()


async def cut_before_the_confirmation(it: Play) -> None:
    """What is published arrives, and the connection ends before anybody is told so."""
    link = it.site.broker_link
    for _ in range(CUTS):
        repeated = it.ledger.repeated
        link.hold_answers()
        await asyncio.sleep(0.5)
        link.cut()
        link.thaw()
        await until_repeated(it, repeated)
    await it.is_cured()


async def until_repeated(it: Play, before: int) -> None:
    """Wait until an event had to be published again."""
    await it.reach(lambda: it.ledger.repeated > before, "a repetition")


async def swallow_everything(it: Play) -> None:
    """No packet goes either way for a while, and no connection ends."""
    it.site.broker_link.freeze()
    await asyncio.sleep(BLACK_HOLE_S)
    it.site.broker_link.thaw()
    await it.is_cured()


async def raise_memory_alarm(it: Play) -> None:
    """The broker is short of memory for a minute."""
    await raise_alarm(it, (*MEMORY, "1MB"), (*MEMORY, "512MB"), MEMORY_ALARM_S)


async def raise_disk_alarm(it: Play) -> None:
    """The broker is short of disk for a moment."""
    await raise_alarm(it, (*DISK, "1000000GB"), (*DISK, "50MB"), DISK_ALARM_S)


async def raise_alarm(
    it: Play, alarm: Sequence[str], all_is_well: Sequence[str], seconds: float
) -> None:
    """The broker takes nothing from publishers for a while."""
    await asyncio.to_thread(control_broker, it, *alarm)
    try:
        confirmed = len(it.ledger.confirmed)
        await asyncio.sleep(seconds)
        assert len(it.ledger.confirmed) <= confirmed + BLOCKED_EVENTS
    finally:
        await asyncio.to_thread(control_broker, it, *all_is_well)
    await it.is_cured()


def control_broker(it: Play, *words: str) -> None:
    """Have the broker's own tool do something."""
    node = it.site.servers.broker
    subprocess.run(
        [str(node.sbin / "rabbitmqctl"), *words],
        env={**os.environ, **rabbit.environment(node)},
        check=True,
        timeout=60,
        capture_output=True,
    )


async def unbind_verdicts(it: Play) -> None:
    """The binding of the verdicts' queue is deleted until one of them could not be routed."""
    repeated = it.ledger.repeated
    async with Publisher(it.site.fleet.plan.addresses.amqp_url, "vandal") as publisher:
        channel = await publisher.channel()
        queue = await channel.declare_queue(VERDICTS.name, passive=True)
        unbinding = asyncio.create_task(keep_unbound(queue))
        try:
            await until_repeated(it, repeated)
        finally:
            unbinding.cancel()
            await asyncio.gather(unbinding, return_exceptions=True)
    await it.flows()
    await it.is_cured()


async def keep_unbound(queue: AbstractQueue) -> None:
    """Delete the binding each time that a service has put it back."""
    while True:
        await queue.unbind(UNSHARDED)
        await asyncio.sleep(0.1)
