"""Composition root of the health manager: `python -m gatemesh_health_manager [migrate]`."""

import asyncio
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from faststream.rabbit import RabbitBroker
from sqlalchemy.ext.asyncio import AsyncEngine

from gatemesh_common.admin import Readiness, start_admin_server
from gatemesh_common.clock import utc_now
from gatemesh_common.collecting import collect_rarely
from gatemesh_common.consuming import consumer_broker, retry_passing_faults, watch_consumers
from gatemesh_common.database import open_database, transaction
from gatemesh_common.errors import GatemeshError, SettingsError
from gatemesh_common.log import configure_logging
from gatemesh_common.outbox import Relay
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
from gatemesh_common.spans import NO_SPANS, Spans
from gatemesh_common.tracing import traced
from gatemesh_health_manager import migrate
from gatemesh_health_manager.first_days import prepare_days
from gatemesh_health_manager.policy import Policy, load_policy
from gatemesh_health_manager.policy_file import PolicyFile
from gatemesh_health_manager.reading import VerdictReading
from gatemesh_health_manager.settings import HealthManagerSettings
from gatemesh_health_manager.signatures import command_signer, load_signing_key
from gatemesh_health_manager.store import Store
from gatemesh_health_manager.store_baselines import BaselineStore
from gatemesh_health_manager.store_days import DayStore
from gatemesh_health_manager.store_work import APP_ID
from gatemesh_health_manager.subscribers import (
    QUEUES,
    RECORDED,
    event_router,
    record_batcher,
    record_router,
)
from gatemesh_health_manager.ticker import Leadership, Ticker

log = logging.getLogger(__name__)

EXIT_MIGRATION_FAILED = 1
SCHEMA_RETRY_S = 1.0
LONGEST_STOP_S = 60.0
"""What was not committed by then is delivered to the next one."""
PLANNED_START = "--planned-start"
"""With `migrate`: everything is started on purpose, so that earlier restarts do not count."""
COMMANDS: Sequence[Sequence[str]] = ([], ["migrate"], ["migrate", PLANNED_START])


@dataclass(frozen=True)
class Stores:
    """What the manager writes to the database through."""

    store: Store
    baselines: BaselineStore
    days: DayStore


async def serve(settings: HealthManagerSettings, policy: Policy, folder: Path) -> int:
    """Run until told to stop; return the exit code."""
    stop = stop_requested(LONGEST_STOP_S)
    readiness = Readiness("database", "broker", "consumers", "verdicts", "proofs")
    start_admin_server(settings.admin_host, settings.admin_port, readiness)

    async def stop_in_order() -> None:
        await stop.wait()
        readiness.set("consumers", met=False)

    with traced(APP_ID, settings) as spans:
        await first_to_end(run(settings, policy, folder, readiness, spans), stop_in_order())
    log.info("health_manager_stopped", extra={"asked": stop.is_set()})
    return 0 if stop.is_set() else EXIT_PART_LOST


async def run(
    settings: HealthManagerSettings,
    policy: Policy,
    folder: Path,
    readiness: Readiness,
    spans: Spans = NO_SPANS,
) -> None:
    """Build everything and run it; returns when a consumer is lost."""
    sign = command_signer(load_signing_key(settings))
    engine = open_database(settings.database_url, deadline_s=settings.database_deadline_s)
    try:
        async with (
            Publisher(settings.amqp_url, APP_ID, settings.publish_deadline_s) as publisher,
            Leadership(engine) as leadership,
        ):
            await wait_for_schema(engine, migrate.head_version(folder))
            relay = Relay(engine, publisher, APP_ID, utc_now)
            store = Store(engine, policy, utc_now, relay.hand_over, sign, spans=spans)
            stores = Stores(
                store, BaselineStore(engine, policy, utc_now), DayStore(engine, utc_now)
            )
            await retry_passing_faults(store.register_policy)
            await prepare_days(stores.days)
            readiness.set("database", met=True)
            await declare_when_up(publisher)
            readiness.set("broker", met=True)
            log.info("health_manager_started", extra={"policy_version": policy.version})
            await first_to_end(
                relay.run(),
                ticker(settings, stores, publisher, leadership).run(),
                VerdictReading(settings, store, publisher, engine).run(
                    lambda need: readiness.set(need, met=True)
                ),
                consume(settings, store, publisher, readiness),
            )
    finally:
        await engine.dispose()


async def wait_for_schema(engine: AsyncEngine, head: str) -> None:
    """Return when the database has the schema that this manager needs."""
    said = ""
    while (found := await retry_passing_faults(lambda: schema_version(engine))) < head:
        if found != said:
            log.error(
                "schema_too_old",
                extra={
                    "found": found or "empty",
                    "needed": head,
                    "cure": "run: python -m gatemesh_health_manager migrate",
                },
            )
            said = found
        await asyncio.sleep(SCHEMA_RETRY_S)


async def schema_version(engine: AsyncEngine) -> str:
    """Return the version of the database's schema, empty for none; versions sort as texts."""
    async with transaction(engine) as connection:
        return await connection.run_sync(migrate.current_version) or ""


def ticker(
    settings: HealthManagerSettings,
    stores: Stores,
    publisher: Publisher,
    leadership: Leadership,
) -> Ticker:
    """Return the ticker that the settings describe."""
    return Ticker(
        stores.store,
        publisher,
        leadership,
        stores.baselines,
        stores.days,
        policy_file=PolicyFile(settings.policy_file) if settings.policy_file else None,
        tick_s=settings.tick_s,
        heartbeat_s=settings.heartbeat_s,
        baseline_s=settings.baseline_s,
        inbox_keep=timedelta(hours=settings.inbox_keep_h),
        history_keep=timedelta(days=settings.replay_keep_days),
        verdicts_keep=timedelta(days=settings.verdicts_keep_days),
        captures_keep=timedelta(days=settings.captures_keep_days),
    )


async def consume(
    settings: HealthManagerSettings, store: Store, publisher: Publisher, readiness: Readiness
) -> None:
    """Handle messages until a consumer is lost."""
    batchers = [record_batcher(store, queue) for queue in RECORDED]

    async def subscribe() -> RabbitBroker:
        broker = consumer_broker(settings.amqp_url, APP_ID, publisher, settings.prefetch)
        broker.include_router(event_router(store))
        broker.include_router(record_router(*batchers))
        await broker.start()
        return broker

    broker = await with_broker(subscribe)
    readiness.set("consumers", met=True)
    batching = asyncio.ensure_future(first_to_end(*(batcher.run() for batcher in batchers)))
    try:
        await first_to_end(watch_consumers(publisher, QUEUES), asyncio.shield(batching))
    finally:
        # The batchers outlive the broker: handlers under way wait for their commit.
        await broker.stop()
        batching.cancel()
        await asyncio.gather(batching, return_exceptions=True)


def migrate_database(settings: HealthManagerSettings, folder: Path, *, planned_start: bool) -> int:
    """Bring the schema up to date; return the exit code."""
    try:
        version = migrate.upgrade(settings.database_url, folder)
        if planned_start:
            migrate.forget_restarts(settings.database_url)
    except SettingsError:
        raise
    except GatemeshError as error:
        sys.stderr.write(f"cannot migrate: {error}\n")
        return EXIT_MIGRATION_FAILED
    log.info("migrated", extra={"version": version})
    return 0


def main(arguments: Sequence[str]) -> int:
    """Read the settings, run, and return the exit code."""
    if list(arguments) not in COMMANDS:
        sys.stderr.write("usage: python -m gatemesh_health_manager [migrate [--planned-start]]\n")
        return EXIT_SETTINGS
    try:
        settings = load_settings(HealthManagerSettings)
        configure_logging(APP_ID, settings.log_level)
        folder = migrate.find_migrations(settings.migrations_dir)
        if arguments:
            return migrate_database(settings, folder, planned_start=PLANNED_START in arguments)
        policy = load_policy(settings.policy_file) if settings.policy_file else Policy()
        collect_rarely()
        return asyncio.run(serve(settings, policy, folder))
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
