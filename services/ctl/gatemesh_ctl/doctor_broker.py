"""The doctor's look at the broker: version, topology, rights, queues. Nothing is changed by it."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto

from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import ChannelNotFoundEntity, ChannelPreconditionFailed
from aiormq.exceptions import ChannelAccessRefused

from gatemesh_common.declaring import declare_exchange
from gatemesh_common.exchanges import CONTROL, DEAD
from gatemesh_common.topology import (
    DEAD_LETTER_ARGUMENTS,
    DEAD_LETTERS,
    EXCHANGE_KINDS,
    WORK_QUEUES,
    queue_arguments,
)
from gatemesh_ctl.errors import CtlError
from gatemesh_ctl.findings import Finding, fault, fault_of, unknown, warning, well
from gatemesh_ctl.queues import QueueState, bounded, broker_connection, queue_state

Operation = Callable[[], Awaitable[object]]

OLDEST_TESTED = (3, 10)
MANY_WAIT = 10_000
"""Messages in a queue that its reader should have had by now."""
NOWHERE = "gatemesh.doctor.nowhere"
"""A routing key that no binding has."""
START_ONCE = "start a service once: each of them declares what is missing"
START = "start it: ./mesh up, docker compose up -d {service}, or its Deployment"
SPARE = ("shadow",)
"""Services without which the rest goes on."""


async def look_at_broker(amqp_url: str) -> list[Finding]:
    """Return what there is to say of the broker."""
    try:
        async with broker_connection(amqp_url) as connection:
            channel = await connection.channel()
            found = [judge_version(server_version(connection)), *await look_at_topology(channel)]
            found.append(await look_at_rights(channel))
            states = [await queue_state(channel, name) for name in known_queues()]
    except CtlError as error:
        return [fault_of("broker", error)]
    known = [state for state in states if isinstance(state, QueueState)]
    return [*found, *judge_readers(known), *judge_lengths(known)]


def known_queues() -> dict[str, dict[str, object]]:
    """Return every queue of the topology with its arguments."""
    own = {queue.name: queue_arguments(queue) for queue in WORK_QUEUES}
    return {**own, DEAD_LETTERS: DEAD_LETTER_ARGUMENTS}


def server_version(connection: AbstractConnection) -> str:
    """Return what the broker calls its version; empty where it does not say."""
    link = connection.transport
    properties = getattr(link.connection, "server_properties", None) if link else None
    version = (properties or {}).get("version", "")
    return version.decode() if isinstance(version, bytes) else str(version)


def judge_version(version: str) -> Finding:
    """Say whether it is a version that is tested."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None:
        return unknown("broker", "it answers and does not tell its version", "none needed")
    if (int(numbers[1]), int(numbers[2])) < OLDEST_TESTED:
        oldest = ".".join(map(str, OLDEST_TESTED))
        what = f"RabbitMQ {version} is older than any that is tested"
        return warning("broker", what, f"upgrade to {oldest} or newer", version=version)
    return well("broker", f"RabbitMQ {version} answers", version=version)


class Standing(Enum):
    """How a part of the topology was found."""

    SAME = auto()
    MISSING = auto()
    OTHER = auto()
    """Declared otherwise than by this release."""
    CLOSED = auto()
    """It is there; this user may not declare it, so that it was not compared."""
    HIDDEN = auto()
    """The broker does not show it to this user."""


async def look_at_topology(channel: AbstractChannel) -> list[Finding]:
    """Return which exchanges and queues are missing, or are not as this release declares them."""
    found = {
        name: await standing(
            channel, exchange_asked(channel, name), exchange_declared(channel, name)
        )
        for name in EXCHANGE_KINDS
    }
    for name, arguments in known_queues().items():
        found[name] = await standing(
            channel, queue_asked(channel, name), queue_declared(channel, name, arguments)
        )
    return judge_topology(found)


async def standing(channel: AbstractChannel, asked: Operation, declared: Operation) -> Standing:
    """Return how something is found: by asking for it, and by declaring it as it should be."""
    error = await refused(channel, asked)
    if error is not None:
        hidden = isinstance(error, ChannelAccessRefused)
        return Standing.HIDDEN if hidden else Standing.MISSING
    # Declaring what is there with the same arguments changes nothing.
    error = await refused(channel, declared)
    if error is None:
        return Standing.SAME
    other = isinstance(error, ChannelPreconditionFailed)
    return Standing.OTHER if other else Standing.CLOSED


def judge_topology(standings: Mapping[str, Standing]) -> list[Finding]:
    """Word what was found of exchanges and queues."""
    found = [
        word(", ".join(names), names)
        for each, word in WORDED.items()
        if (names := [name for name, one in standings.items() if one is each])
    ]
    all_well = f"all {len(standings)} exchanges and queues are as declared"
    return found or [well("topology", all_well)]


WORDED: Mapping[Standing, Callable[[str, list[str]], Finding]] = {
    Standing.MISSING: lambda told, names: fault(
        "topology", f"missing: {told}", START_ONCE, missing=names
    ),
    Standing.OTHER: lambda told, names: fault(
        "topology",
        f"declared otherwise than by this release: {told}",
        "let readers empty the queues among them, stop the services, delete them, and "
        + START_ONCE,
        other=names,
    ),
    Standing.CLOSED: lambda _, names: unknown(
        "topology",
        f"this user may not declare, so that {len(names)} exchanges and queues were not compared",
        "call with a user who may configure",
    ),
    Standing.HIDDEN: lambda told, names: unknown(
        "topology",
        f"the broker does not show this user: {told}",
        "call with a user who has rights to them",
        hidden=names,
    ),
}


async def look_at_rights(channel: AbstractChannel) -> Finding:
    """Return whether this user may publish requests.

    Taking a binding away that is not there needs the right to write to the exchange it leads to,
    and changes nothing; the broker checks that right before any other.
    """
    error = await refused(channel, unbound_from_nothing(channel))
    # A refusal that names the other exchange is about reading, which came after the writing.
    if isinstance(error, ChannelAccessRefused) and f"exchange '{CONTROL}'" in str(error):
        cure = "have its administrator grant that: docs/authorisation.md"
        return fault("permissions", "this user may not publish requests", cure)
    if isinstance(error, ChannelNotFoundEntity):
        return unknown("permissions", "there is nothing to publish to yet", START_ONCE)
    return well("permissions", f"this user may write to {CONTROL}")


def exchange_asked(channel: AbstractChannel, name: str) -> Operation:
    """Return what asks for an exchange."""
    return lambda: channel.get_exchange(name, ensure=True)


def exchange_declared(channel: AbstractChannel, name: str) -> Operation:
    """Return what declares an exchange as it should be."""
    return lambda: declare_exchange(channel, name)


def queue_asked(channel: AbstractChannel, name: str) -> Operation:
    """Return what asks for a queue."""
    return lambda: channel.get_queue(name, ensure=True)


def queue_declared(channel: AbstractChannel, name: str, arguments: dict[str, object]) -> Operation:
    """Return what declares a queue as it should be."""
    return lambda: channel.declare_queue(name, durable=True, arguments=dict(arguments))  # type: ignore[arg-type]


def unbound_from_nothing(channel: AbstractChannel) -> Operation:
    """Return what takes a binding away that is not there."""

    async def unbind() -> object:
        exchange = await channel.get_exchange(CONTROL, ensure=False)
        return await exchange.unbind(DEAD, routing_key=NOWHERE)

    return unbind


async def refused(channel: AbstractChannel, operation: Operation) -> Exception | None:
    """Return with what the broker refused an operation, with the channel open anew; else None."""
    try:
        await bounded(operation())
    except (ChannelNotFoundEntity, ChannelPreconditionFailed, ChannelAccessRefused) as error:
        await channel.reopen()
        return error
    return None


def judge_readers(states: list[QueueState]) -> list[Finding]:
    """Say which services read their queues."""
    services: dict[str, list[str]] = {}
    for state in states:
        if state.name != DEAD_LETTERS:
            unread = services.setdefault(state.name.partition(".")[0], [])
            unread += [] if state.consumers else [state.name]
    found = []
    for service, unread in services.items():
        if not unread:
            found.append(well(service, "reads its queues"))
            continue
        level = warning if service in SPARE else fault
        what = f"nobody reads {', '.join(unread)}"
        found.append(level(service, what, START.format(service=service), unread=unread))
    return found


def judge_lengths(states: list[QueueState]) -> list[Finding]:
    """Say where messages pile up, and whether there are dead letters."""
    found = []
    for state in states:
        if state.name == DEAD_LETTERS:
            found.append(judge_letters(state.messages))
        elif state.messages >= MANY_WAIT:
            what = f"{state.messages} messages wait in {state.name}"
            cure = "see whether its reader is slow or stuck (its log); docs/scaling.md adds readers"
            found.append(warning("queues", what, cure, messages=state.messages))
    return found


def judge_letters(count: int) -> Finding:
    """Say whether there are messages that nobody could take."""
    if not count:
        return well("dead letters", "there are none")
    said = "1 message that no service could take" if count == 1 else f"{count} messages"
    cure = "gatemesh-ctl dead-letters tells each reason"
    return warning("dead letters", said, cure, messages=count)


def diagnose_broker(amqp_url: str) -> list[Finding]:
    """Return what there is to say of the broker; for callers without an event loop."""
    return asyncio.run(look_at_broker(amqp_url))
