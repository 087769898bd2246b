"""A real broker lets each service do what it must, and refuses the rest."""

from collections.abc import Awaitable, Callable, Iterator
from uuid import uuid4

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from aio_pika.exceptions import AMQPError, ChannelPreconditionFailed, ProbableAuthenticationError
from aiormq.exceptions import ChannelAccessRefused
from tests.conftest import Bench
from tests.integration.common.secured import Secured, secured_site

from gatemesh_common.broker import (
    COMMANDS,
    DEAD_LETTERS,
    PROOFS,
    REPORTS,
    SAMPLES,
    VERDICTS,
    WorkQueue,
    bind_proofs,
    declare_topology,
)
from gatemesh_common.broker_users import SERVICES
from gatemesh_common.errors import BrokerRefusedError, BrokerUnavailableError
from gatemesh_common.messages import ALERTS, CONTROL, DEAD, EVENTS, SHADOW
from gatemesh_common.publisher import Publisher
from gatemesh_common.settling import settle_topology
from gatemesh_health_manager.shards import declare_shards

Operation = Callable[[AbstractChannel], Awaitable[object]]
COMMAND = "command.v1.restart.default.engine-0"


@pytest.fixture(scope="module")
def secured(bench: Bench) -> Iterator[Secured]:
    """Give one virtual host to all tests here."""
    with secured_site(bench) as site:
        yield site


def publish(exchange: str, key: str, user: str | None = None) -> Operation:
    """Return the sending of an empty message; it must reach a queue, where there is one for it."""

    async def operation(channel: AbstractChannel) -> None:
        target = (
            await channel.get_exchange(exchange, ensure=False)
            if exchange
            else channel.default_exchange
        )
        await target.publish(aio_pika.Message(b"{}", user_id=user), key, mandatory=False)

    return operation


async def leave(_: AbstractIncomingMessage) -> None:
    """Acknowledge nothing, so that it goes back."""


def consume(queue: str) -> Operation:
    """Return the taking of a queue's messages."""

    async def operation(channel: AbstractChannel) -> None:
        found = await channel.get_queue(queue, ensure=False)
        tag = await found.consume(leave)
        await found.cancel(tag)

    return operation


def listen(exchange: str, key: str, name: str | None = None) -> Operation:
    """Return the binding of a queue of one's own to an exchange."""

    async def operation(channel: AbstractChannel) -> None:
        queue = await channel.declare_queue(name, exclusive=True, auto_delete=True)
        await queue.bind(exchange, key)

    return operation


def declare(queue: str) -> Operation:
    """Return the declaring of a durable queue."""
    return lambda channel: channel.declare_queue(queue, durable=True)


def delete(queue: str) -> Operation:
    """Return the deleting of a queue."""
    return lambda channel: channel.queue_delete(queue)


def purge(queue: str) -> Operation:
    """Return the emptying of a queue."""

    async def operation(channel: AbstractChannel) -> None:
        await (await channel.get_queue(queue, ensure=False)).purge()

    return operation


FORBIDDEN = {
    "agent": [
        pytest.param(publish(CONTROL, COMMAND), id="writes-a-command"),
        pytest.param(publish(CONTROL, "request.v1.drain.default"), id="asks-as-an-operator"),
        pytest.param(publish("", COMMANDS.name), id="publishes-straight-into-a-queue"),
        pytest.param(publish(ALERTS, "verdict.v1.l4.default.e"), id="judges-as-the-shadow"),
        pytest.param(publish(EVENTS, "routing.v1.default"), id="changes-the-routing"),
        pytest.param(publish(EVENTS, "report.v1.default.e"), id="reports-as-the-executor"),
        pytest.param(publish(EVENTS, "incident.v1.default.e"), id="tells-of-an-incident"),
        pytest.param(publish(EVENTS, ""), id="publishes-without-a-key"),
        pytest.param(publish(DEAD, COMMANDS.name), id="forges-a-dead-letter"),
        pytest.param(consume(COMMANDS.name), id="takes-commands"),
        pytest.param(consume(SAMPLES.name), id="takes-the-prompts-of-others"),
        pytest.param(listen(CONTROL, "#"), id="listens-to-commands"),
        pytest.param(listen(SHADOW, "#"), id="listens-to-prompts"),
        pytest.param(listen(EVENTS, "#"), id="listens-to-all-events"),
        pytest.param(declare("mine"), id="declares-a-queue"),
        pytest.param(bind_proofs, id="leads-proofs-elsewhere"),
        pytest.param(delete(VERDICTS.name), id="deletes-a-queue"),
        pytest.param(purge(VERDICTS.name), id="empties-a-queue"),
    ],
    "executor": [
        pytest.param(publish(CONTROL, COMMAND), id="orders-itself"),
        pytest.param(publish(ALERTS, "verdict.v1.l1.default.e"), id="judges"),
        pytest.param(publish(EVENTS, "state.v1.default.e"), id="decides-a-state"),
        pytest.param(publish(DEAD, VERDICTS.name), id="forges-a-dead-letter"),
        pytest.param(consume(REPORTS.name), id="takes-reports-away"),
        pytest.param(delete(COMMANDS.name), id="deletes-its-queue"),
    ],
    "shadow": [
        pytest.param(publish(CONTROL, COMMAND), id="writes-a-command"),
        pytest.param(publish(ALERTS, "verdict.v1.l1.default.e"), id="judges-as-the-agent"),
        pytest.param(publish(SHADOW, "sample.v1.default"), id="makes-its-own-samples"),
        pytest.param(consume(COMMANDS.name), id="takes-commands"),
    ],
    "notifier": [
        pytest.param(publish(CONTROL, "request.v1.drain.default"), id="asks-as-an-operator"),
        pytest.param(publish(EVENTS, "incident.v1.default.e"), id="makes-an-incident"),
        pytest.param(listen(EVENTS, "telemetry.v1.#", "notifier.t"), id="listens-to-telemetry"),
        pytest.param(declare("executor.mine"), id="declares-beside-its-own"),
    ],
    "console": [
        pytest.param(publish(CONTROL, COMMAND), id="writes-a-command"),
        pytest.param(listen(SHADOW, "#"), id="listens-to-prompts"),
        pytest.param(listen(CONTROL, "#"), id="listens-to-commands"),
    ],
    "operator": [
        pytest.param(publish(CONTROL, COMMAND), id="writes-a-command"),
        pytest.param(publish(CONTROL, ""), id="publishes-without-a-key"),
        pytest.param(publish("", COMMANDS.name), id="publishes-straight-into-a-queue"),
        pytest.param(consume(COMMANDS.name), id="takes-commands"),
        pytest.param(delete(DEAD_LETTERS), id="deletes-the-dead-letters"),
    ],
    "health_manager": [
        pytest.param(publish(ALERTS, "verdict.v1.l1.default.e"), id="judges"),
        pytest.param(publish(CONTROL, "request.v1.drain.default"), id="asks-as-an-operator"),
        pytest.param(publish(EVENTS, "report.v1.default.e"), id="reports-to-itself"),
        pytest.param(publish("", COMMANDS.name), id="publishes-straight-into-a-queue"),
        pytest.param(declare("mine"), id="declares-a-strange-queue"),
    ],
    "alerter": [
        pytest.param(publish(EVENTS, "state.v1.default.e"), id="decides-a-state"),
        pytest.param(consume(VERDICTS.name), id="takes-verdicts-away"),
    ],
    "monitoring": [
        pytest.param(publish(ALERTS, "verdict.v1.l1.default.e"), id="judges"),
        pytest.param(consume(DEAD_LETTERS), id="reads-messages"),
    ],
}

ALLOWED = {
    "agent": [
        publish(ALERTS, "verdict.v1.l1.default.e"),
        publish(ALERTS, "verdict.v1.l5.default.e"),
        publish(SHADOW, "sample.v1.default"),
        publish(EVENTS, "telemetry.v1.default.e"),
        publish(EVENTS, "rejected.v1.default.e"),
        publish(EVENTS, "applied.v1.default.agent-0"),
        listen(EVENTS, "routing.v1.default"),
        listen(EVENTS, "baseline.v1.default"),
    ],
    "executor": [
        consume(COMMANDS.name),
        publish(EVENTS, "report.v1.default.e"),
        publish(EVENTS, "step.v1.default.e"),
        publish(EVENTS, "observed.v1.default.e"),
        publish(DEAD, COMMANDS.name),
        listen(EVENTS, "applied.v1.#", "executor.applied.1"),
        listen(EVENTS, "routing.v1.#", "executor.routing.1"),
    ],
    "shadow": [
        consume(SAMPLES.name),
        publish(ALERTS, "verdict.v1.l4.default.e"),
        publish(ALERTS, "verdict.v1.l2.default.e"),
        publish(DEAD, SAMPLES.name),
        listen(EVENTS, "routing.v1.#", "shadow.routing.1"),
    ],
    "notifier": [
        publish(DEAD, "notifier.incidents"),
        listen(EVENTS, "incident.v1.#", "notifier.incidents"),
        listen(ALERTS, "#", "notifier.alerts.1"),
    ],
    "console": [
        publish(CONTROL, "request.v1.drain.default"),
        listen(EVENTS, "#"),
        listen(ALERTS, "#"),
    ],
    "operator": [
        publish(CONTROL, "request.v1.drain.default"),
        publish(CONTROL, "trial.v1.drain.default"),
        publish(DEAD, VERDICTS.name),
        consume(DEAD_LETTERS),
    ],
    "health_manager": [
        publish(CONTROL, COMMAND),
        publish(EVENTS, "routing.v1.default"),
        publish(EVENTS, "state.v1.default.e"),
        publish(EVENTS, "incident.v1.default.e"),
        publish(EVENTS, "baseline.v1.default"),
        publish(DEAD, VERDICTS.name),
        consume(VERDICTS.name),
        bind_proofs,
        consume(PROOFS.name),
        consume(REPORTS.name),
    ],
    "alerter": [publish(ALERTS, "verdict.v1.l4.default.e")],
}


@pytest.mark.parametrize(
    ("service", "operation"),
    [
        pytest.param(service, *case.values, id=f"{service}-{case.id}")
        for service, cases in FORBIDDEN.items()
        for case in cases
    ],
)
async def test_a_service_must_not(secured: Secured, service: str, operation: Operation) -> None:
    """The broker closes the channel of whoever tries."""
    async with secured.channel(service) as channel:
        with pytest.raises(ChannelAccessRefused):
            await operation(channel)


@pytest.mark.parametrize("service", sorted(ALLOWED))
async def test_a_service_may_what_it_must(secured: Secured, service: str) -> None:
    """All that it does in its life, on one channel, which the first refusal would close."""
    async with secured.channel(service) as channel:
        for operation in ALLOWED[service]:
            await operation(channel)


async def test_nobody_sends_in_another_name(secured: Secured) -> None:
    """Operators are proven by the property that the broker compares."""
    own, other = secured.site.user("operator"), secured.site.user("console")
    async with secured.channel("operator") as channel:
        await publish(CONTROL, "request.v1.drain.default", own)(channel)
        with pytest.raises(ChannelPreconditionFailed):
            await publish(CONTROL, "request.v1.drain.default", other)(channel)


async def test_a_refused_message_is_told_and_holds_nothing_up(secured: Secured) -> None:
    """A newer agent at a broker with older rights: what it may send still arrives."""
    message = aio_pika.Message(b"{}")
    async with Publisher(secured.url("agent"), "agent", deadline_s=20) as publisher:
        with pytest.raises(BrokerRefusedError, match="import the broker's definitions"):
            await publisher.publish_raw(message, CONTROL, COMMAND, mandatory=True)
        await publisher.publish_raw(message, ALERTS, "verdict.v1.l1.default.e", mandatory=True)


async def test_a_wrong_password_opens_nothing(secured: Secured) -> None:
    """The hash in the file is checked."""
    url = secured.url("agent").replace(secured.passwords["agent"], "guess")
    with pytest.raises(ProbableAuthenticationError):
        await aio_pika.connect(url)


async def test_a_user_stays_in_its_virtual_host(secured: Secured, vhost_url: str) -> None:
    """Two stacks on one broker do not see each other."""
    other = vhost_url.rpartition("/")[2]
    url = secured.url("health_manager").replace(secured.site.vhost, other)
    url = url.replace(f"//{other}_", f"//{secured.site.prefix}_")
    with pytest.raises((AMQPError, OSError)):
        await aio_pika.connect(url)


@pytest.mark.parametrize("service", sorted(set(SERVICES) - {"health_manager"}))
async def test_the_topology_is_there_for_who_may_not_declare_it(
    secured: Secured, service: str
) -> None:
    """It was imported with the users."""
    async with Publisher(secured.url(service), service) as publisher:
        await settle_topology(publisher)
        assert publisher.may_declare is False


async def test_the_manager_declares_what_the_file_holds(secured: Secured) -> None:
    """The same arguments and bindings, or the broker would refuse; and shards besides."""
    async with Publisher(secured.url("health_manager"), "health_manager") as publisher:
        await settle_topology(publisher)
        assert publisher.may_declare
    assert await declare_shards(secured.url("health_manager"), 2) == 2
    await declare_shards(secured.url("health_manager"), 1)


async def test_a_consumer_adds_its_own_queue(secured: Secured) -> None:
    """The notifier's queue has a dead letter, as all have."""
    own = WorkQueue(f"notifier.{uuid4().hex[:8]}", EVENTS, "incident.v1.#")
    async with Publisher(secured.url("notifier"), "notifier") as publisher:
        await settle_topology(publisher, (own,))
        async with secured.channel("health_manager") as channel:
            await publish(EVENTS, "incident.v1.default.e")(channel)
        # Its owner looks: newer brokers show it to nobody else.
        async with secured.channel("notifier") as channel:
            found = await channel.declare_queue(own.name, passive=True)
            assert found.declaration_result.message_count == 1


async def test_whoever_starts_first_waits_for_the_manager(bench: Bench) -> None:
    """With a broker that is empty, an agent says what is missing and tries again."""
    with secured_site(bench) as site:
        async with (
            site.channel("health_manager") as channel,
            Publisher(site.url("agent"), "agent") as publisher,
        ):
            # Something that it may use: newer brokers show it nothing else.
            await channel.exchange_delete(SHADOW)
            with pytest.raises(BrokerUnavailableError, match=SHADOW):
                await settle_topology(publisher)
            await declare_topology(channel)
            await settle_topology(publisher)
