"""Composition root of the shadow: `python -m gatemesh_shadow`."""

import asyncio
import logging
import random
import sys
import time
from uuid import uuid4

from faststream.rabbit import RabbitBroker

from gatemesh_common.admin import Readiness, start_admin_server
from gatemesh_common.broker import SAMPLES
from gatemesh_common.clock import utc_now
from gatemesh_common.consuming import consumer_broker, watch_consumers
from gatemesh_common.errors import SettingsError
from gatemesh_common.hearing import hearing_router
from gatemesh_common.log import configure_logging
from gatemesh_common.messages import CaptureTerms, Message, RoutingTable
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
from gatemesh_common.spans import NO_SPANS, Spans, told
from gatemesh_common.tracing import traced
from gatemesh_shadow.answering import SecondAnswers
from gatemesh_shadow.asking import Replicas
from gatemesh_shadow.budget import Allowance, Budget
from gatemesh_shadow.calibration import Calibration
from gatemesh_shadow.captures import PairCaptures
from gatemesh_shadow.corroborating import Corroboration
from gatemesh_shadow.fleet import Fleet
from gatemesh_shadow.judging import Publish, SampleJudge
from gatemesh_shadow.limits_store import LimitsStore
from gatemesh_shadow.models import Models, open_models
from gatemesh_shadow.pair import PairLimits
from gatemesh_shadow.reference_rounds import ReferenceRounds
from gatemesh_shadow.replica import ReplicaClient
from gatemesh_shadow.scoring import ReplicaScore
from gatemesh_shadow.settings import ShadowSettings
from gatemesh_shadow.subscribers import sample_router

log = logging.getLogger(__name__)

APP_ID = "shadow"
SAVE_EVERY_S = 30.0
ROUTING_SILENCE_S = 30.0
STOP_GRACE_S = 2.0
"""Judges that are away may be so for long, as when a whole stack is ended."""
"""The manager repeats its tables every 2 s; after so long a silence they may be wrong."""


def build_replicas(settings: ShadowSettings, fleet: Fleet, client: ReplicaClient) -> Replicas:
    """Return the judges that the settings allow."""
    allowance = Allowance(
        settings.at_once, settings.at_once_per_instance, settings.per_instance_per_s
    )
    return Replicas(
        fleet,
        Budget(allowance, time.monotonic),
        client,
        utc_now,
        settings.max_age_s,
        settings.most_answer_tokens,
    )


def build_judge(
    settings: ShadowSettings,
    replicas: Replicas,
    models: Models,
    store: LimitsStore,
    publish: Publish,
) -> SampleJudge:
    """Return a judge with every measure that is switched on and possible."""
    limits = PairLimits(
        cosine_greedy=settings.embedding_threshold,
        cosine_sampled=settings.embedding_threshold_sampled,
    )
    corroboration = Corroboration(ReferenceRounds(replicas, time.monotonic))
    scoring = ReplicaScore(
        replicas, settings.own_logprobs, settings.most_answer_tokens, corroboration
    )
    return SampleJudge(
        replicas=replicas,
        scoring=scoring if settings.score else None,
        corroboration=corroboration,
        answering=SecondAnswers(replicas, models.embedder, limits),
        verifying=models.verifying,
        store=store,
        publish=publish,
        clock=utc_now,
        rng=random.SystemRandom(),
        second_answer_share=settings.second_answer_share,
        captures=PairCaptures(publish, APP_ID, random.SystemRandom()),
    )


async def serve(settings: ShadowSettings) -> int:
    """Run until told to stop; return the exit code."""
    stop = stop_requested()
    readiness = Readiness("broker", "routing", "consumers")
    store = LimitsStore(settings.state_dir)
    start_admin_server(settings.admin_host, settings.admin_port, readiness)

    async def stop_in_order() -> None:
        await stop.wait()
        readiness.set("consumers", met=False)

    try:
        with traced(APP_ID, settings) as spans:
            await first_to_end(run(settings, store, readiness, spans), stop_in_order())
    finally:
        store.save()
    log.info("shadow_stopped", extra={"asked": stop.is_set()})
    return 0 if stop.is_set() else EXIT_PART_LOST


async def run(
    settings: ShadowSettings, store: LimitsStore, readiness: Readiness, spans: Spans = NO_SPANS
) -> None:
    """Build everything and run it; returns when the consumer of samples is lost."""
    async with (
        Publisher(settings.amqp_url, APP_ID, settings.publish_deadline_s) as publisher,
        ReplicaClient(settings.request_deadline_s, settings.api_key.get_secret_value()) as client,
    ):
        fleet = Fleet()
        models = open_models(settings)
        replicas = build_replicas(settings, fleet, client)

        async def publish(message: Message) -> None:
            await publisher.publish(told(spans, message))

        judge = build_judge(settings, replicas, models, store, publish)
        calibration = Calibration(
            replicas, store, models.embedder, utc_now, settings.calibrate_every_s
        )
        log.info("shadow_started", extra=models.labels())
        # In threads of their own, at once: the first sample must not wait for a minute.
        loading = asyncio.create_task(asyncio.to_thread(models.load))
        await first_to_end(
            calibration.run() if settings.calibrate else asyncio.Event().wait(),
            save_now_and_then(store),
            watch_routing(fleet, readiness),
            consume(settings, publisher, judge, fleet, readiness),
        )
        loading.cancel()


async def save_now_and_then(store: LimitsStore) -> None:
    """Write down what was learnt, for ever."""
    while True:
        await asyncio.sleep(SAVE_EVERY_S)
        await asyncio.to_thread(store.save)


async def watch_routing(fleet: Fleet, readiness: Readiness) -> None:
    """Say when no table has come for long, for ever."""
    while True:
        silence_s = time.monotonic() - fleet.heard_s
        readiness.set("routing", met=silence_s < ROUTING_SILENCE_S)
        await asyncio.sleep(0.5)


async def consume(
    settings: ShadowSettings,
    publisher: Publisher,
    judge: SampleJudge,
    fleet: Fleet,
    readiness: Readiness,
) -> None:
    """Judge samples until their consumer is lost."""
    await declare_when_up(publisher)

    def hear(table: RoutingTable) -> None:
        # One from the future could never be replaced by a lower version.
        stamped = min(table.timestamp, utc_now())
        fleet.hear(table.model_copy(update={"timestamp": stamped}), time.monotonic())

    async def start() -> RabbitBroker:
        broker = consumer_broker(
            settings.amqp_url, APP_ID, publisher, settings.prefetch, STOP_GRACE_S
        )
        process_id = uuid4().hex[:8]
        broker.include_router(hearing_router(RoutingTable, hear, f"shadow.routing.{process_id}"))
        if judge.captures is not None:
            broker.include_router(
                hearing_router(
                    CaptureTerms, judge.captures.hear, f"shadow.capture_terms.{process_id}"
                )
            )
        broker.include_router(sample_router(judge.judge))
        await broker.start()
        return broker

    broker = await with_broker(start)
    readiness.set("consumers", met=True)
    readiness.set("broker", met=True)
    try:
        await watch_consumers(publisher, (SAMPLES,))
    finally:
        await broker.stop()


def main() -> int:
    """Read the settings, run, and return the exit code."""
    try:
        settings = load_settings(ShadowSettings)
        configure_logging(APP_ID, settings.log_level)
        return asyncio.run(serve(settings))
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS


if __name__ == "__main__":
    sys.exit(main())
