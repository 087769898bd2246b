"""From start to exit, as vLLM lives: late ports, drains, deaths with code 0."""

import asyncio
import contextlib
import logging
import os
import random
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator

from aiohttp import web

from gatemesh_engine_sim.application import build_application
from gatemesh_engine_sim.engine import Engine
from gatemesh_engine_sim.fault_plan import DrillReader, FaultPlan
from gatemesh_engine_sim.faults import fault_table
from gatemesh_engine_sim.library import load_library
from gatemesh_engine_sim.metrics import EngineMetrics
from gatemesh_engine_sim.scoring import Scorer
from gatemesh_engine_sim.service import Service
from gatemesh_engine_sim.settings import SimSettings
from gatemesh_engine_sim.weights import loaded
from gatemesh_engine_sim.worker import start_worker

log = logging.getLogger(__name__)

CLEANUP_S = 1.0
"""What handlers get to send their last events."""


def build_service(settings: SimSettings) -> Service:
    """The parts of one engine, from its settings."""
    library = load_library()
    faults = fault_table(library)
    drill = DrillReader(settings.chaos_file, os.getpgrp(), frozenset(faults))
    rng = random.Random(settings.seed)  # noqa: S311
    weights = loaded(settings.weights)
    return Service(
        settings=settings,
        library=library,
        scorer=Scorer(library),
        faults=faults,
        plan=FaultPlan(schedule=settings.schedule, drill=drill, rng=rng, weights=weights),
        engine=Engine(max_running=settings.max_num_seqs, max_waiting=settings.max_num_queued_reqs),
        metrics=EngineMetrics(settings.model),
        clock=time.monotonic,
        wall_clock=time.time,
        # Ids differ between lives, chance does not.
        rng=random.SystemRandom(),
        begun_s=time.monotonic(),
        weights=weights,
    )


async def run(settings: SimSettings) -> None:
    """Serve until a signal, a fault or the worker's end; always returns in order."""
    with _worker(settings) as worker:
        service = build_service(settings)
        await asyncio.sleep(settings.start_delay_s)
        # Before the port opens: who saw the engine ready may stop it in the same instant.
        _handle_signals(service, asyncio.get_running_loop())
        async with _listening(service):
            await _until_ended(service.engine, worker)
            await asyncio.sleep(settings.teardown_s)
        log.info("engine_stopped", extra={"instance_id": settings.name})


@contextlib.contextmanager
def _worker(settings: SimSettings) -> Iterator[subprocess.Popen[bytes] | None]:
    worker = start_worker() if settings.spawn_worker else None
    try:
        yield worker
    finally:
        if worker is not None:
            worker.terminate()
            worker.wait()


@contextlib.asynccontextmanager
async def _listening(service: Service) -> AsyncIterator[None]:
    # A client that leaves cancels its handler, as it aborts its request in vLLM.
    runner = web.AppRunner(
        build_application(service),
        access_log=None,
        handle_signals=False,
        handler_cancellation=True,
        shutdown_timeout=CLEANUP_S,
    )
    await runner.setup()
    settings = service.settings
    try:
        await web.TCPSite(runner, settings.host, settings.port).start()
        # The one line that tells a caller of `--port 0` where to go.
        port = runner.addresses[0][1]
        log.info(
            "engine_ready http://%s:%d", settings.host, port, extra={"instance_id": settings.name}
        )
        yield
    finally:
        await runner.cleanup()


def _handle_signals(service: Service, loop: asyncio.AbstractEventLoop) -> None:
    stopping: set[asyncio.Task[None]] = set()

    def stop() -> None:
        log.info("[shutdown] API server: shutdown triggered")
        if not stopping:
            grace_s = service.settings.shutdown_timeout
            stopping.add(loop.create_task(service.engine.drain(grace_s)))

    loop.add_signal_handler(signal.SIGINT, stop)
    loop.add_signal_handler(
        signal.SIGTERM, (lambda: None) if service.settings.ignore_sigterm else stop
    )


async def _until_ended(engine: Engine, worker: subprocess.Popen[bytes] | None) -> None:
    if worker is None:
        await engine.wait_ended()
        return
    watch = asyncio.create_task(asyncio.to_thread(worker.wait))
    ended = asyncio.create_task(engine.wait_ended())
    await asyncio.wait({watch, ended}, return_when=asyncio.FIRST_COMPLETED)
    engine.die()
    worker.terminate()
    await watch
    await ended
