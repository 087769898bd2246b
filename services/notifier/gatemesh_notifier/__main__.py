"""Composition root of the notifier: `python -m gatemesh_notifier [check]`."""

import asyncio
import logging
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from uuid import uuid4

from faststream.rabbit import RabbitBroker

from gatemesh_common.admin import Readiness, start_admin_server
from gatemesh_common.clock import utc_now
from gatemesh_common.consuming import consumer_broker, watch_consumers
from gatemesh_common.errors import SettingsError
from gatemesh_common.log import configure_logging
from gatemesh_common.publisher import Publisher
from gatemesh_common.running import (
    EXIT_PART_LOST,
    EXIT_SETTINGS,
    declare_when_up,
    first_to_end,
    stop_requested,
    with_broker,
)
from gatemesh_common.settings import load_settings
from gatemesh_notifier.courier import Courier
from gatemesh_notifier.desk import Desk
from gatemesh_notifier.facts import AlertChoice
from gatemesh_notifier.grouping import Mailbox
from gatemesh_notifier.journal import Journal
from gatemesh_notifier.sending import keep_addresses_out_of_logs, open_target, sender
from gatemesh_notifier.settings import NotifierSettings
from gatemesh_notifier.subscribers import QUEUES, alert_router, event_router
from gatemesh_notifier.targets import Target, targets_of
from gatemesh_notifier.wording import Wording, load_wording

log = logging.getLogger(__name__)

APP_ID = "notifier"
FORGET_EVERY_S = 3600.0
LONGEST_TRY_S = 6.0
"""How long a try may take that is under way at the end."""
STOP_GRACE_S = 2.0
"""What is not told yet goes back to the queue."""
PREFETCH = 1000
"""Events held while they are gathered, or while a target is away."""
USAGE = "usage: python -m gatemesh_notifier [check]\n"


def read_targets(settings: NotifierSettings) -> tuple[Target, ...]:
    """Return who is told."""
    return targets_of(settings.urls, settings.targets_file, settings.language)


def wording_of(settings: NotifierSettings, target: Target) -> Wording:
    """Return a target's words."""
    return load_wording(target.language, settings.templates_dir, settings.incident_link)


def build_couriers(settings: NotifierSettings, journal: Journal) -> list[Courier]:
    """Return one courier per target."""
    return [
        Courier(
            target=target,
            mailbox=Mailbox(settings.pace, journal.last_words(target.name)),
            wording=wording_of(settings, target),
            journal=journal,
            send=sender(target, open_target(target)),
            give_up_after_s=settings.give_up_after_s,
            clock=utc_now,
            monotonic=time.monotonic,
        )
        for target in read_targets(settings)
    ]


async def serve(settings: NotifierSettings) -> int:
    """Run until told to stop; return the exit code."""
    stop = stop_requested()
    readiness = Readiness("broker", "consumers")
    journal = Journal(settings.state_dir)
    desk = Desk(couriers := build_couriers(settings, journal))
    start_admin_server(settings.admin_host, settings.admin_port, readiness)
    log.info("notifier_started", extra={"targets": [one.target.name for one in couriers]})

    async def stop_in_order() -> None:
        await stop.wait()
        readiness.set("consumers", met=False)
        # What is being sent now must be written down, or it would be told again.
        desk.stop()
        await asyncio.sleep(LONGEST_TRY_S)

    try:
        await first_to_end(
            desk.run(),
            forget_now_and_then(journal, timedelta(days=settings.keep_days)),
            consume(settings, desk, readiness),
            stop_in_order(),
        )
    finally:
        journal.close()
    log.info("notifier_stopped", extra={"asked": stop.is_set()})
    return 0 if stop.is_set() else EXIT_PART_LOST


async def forget_now_and_then(journal: Journal, kept: timedelta) -> None:
    """Drop what was told long ago, for ever."""
    while True:
        journal.forget(utc_now() - kept)
        await asyncio.sleep(FORGET_EVERY_S)


async def consume(settings: NotifierSettings, desk: Desk, readiness: Readiness) -> None:
    """Read events until a consumer is lost."""
    async with Publisher(settings.amqp_url, APP_ID, settings.publish_deadline_s) as publisher:
        await declare_when_up(publisher, QUEUES)

        async def start() -> RabbitBroker:
            broker = consumer_broker(settings.amqp_url, APP_ID, publisher, PREFETCH, STOP_GRACE_S)
            broker.include_router(event_router(desk))
            if settings.alerts is not AlertChoice.OFF:
                broker.include_router(alert_router(desk, settings.alerts, uuid4().hex[:8]))
            await broker.start()
            return broker

        broker = await with_broker(start)
        readiness.set("consumers", met=True)
        readiness.set("broker", met=True)
        try:
            await watch_consumers(publisher, QUEUES)
        finally:
            await broker.stop()


async def check(settings: NotifierSettings) -> int:
    """Send every target a test message and say who took it; 1 when one did not."""
    all_taken = True
    for target in read_targets(settings):
        send = sender(target, open_target(target))
        taken = await send(wording_of(settings, target).trial())
        sys.stdout.write(f"{target.name}: {'taken' if taken else 'NOT taken'}\n")
        all_taken = all_taken and taken
    return 0 if all_taken else 1


def main(arguments: Sequence[str]) -> int:
    """Read the settings, run, and return the exit code."""
    if list(arguments) not in ([], ["check"]):
        sys.stderr.write(USAGE)
        return EXIT_SETTINGS
    try:
        settings = load_settings(NotifierSettings)
        configure_logging(APP_ID, settings.log_level)
        keep_addresses_out_of_logs()
        return asyncio.run(check(settings) if arguments else serve(settings))
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
