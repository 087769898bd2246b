"""Several worker processes behind one port: started, watched, stopped in order."""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http.client import HTTPException

from prometheus_client import generate_latest
from prometheus_client.registry import REGISTRY

from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.worker_metrics import OWN, WorkerMetrics, registry_of
from gatemesh_agent.worker_share import worker_id
from gatemesh_common.admin import Readiness, start_admin_server
from gatemesh_common.errors import SettingsError
from gatemesh_common.running import EXIT_SETTINGS, first_to_end, stop_requested

log = logging.getLogger(__name__)

BACKLOG = 1024
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LIVED_S = 30.0
"""A worker that lived so long is started at once when it ends."""
STOP_EXTRA_S = 10.0
"""Time that a worker gets to tell the broker what it knows, after its running requests."""
READ_S = 2.0


def listeners(host: str, port: int, count: int) -> list[socket.socket]:
    """Return so many listening sockets on one port, between which the kernel parts clients.

    They stay open here, so that who waits in one outlives the worker that serves it.

    Raises:
        SettingsError: the address cannot be bound.
    """
    with ExitStack() as undo:
        opened: list[socket.socket] = []
        try:
            for _ in range(count):
                family = socket.AF_INET6 if ":" in host else socket.AF_INET
                listener = undo.enter_context(socket.socket(family, socket.SOCK_STREAM))
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                listener.bind((host, opened[0].getsockname()[1] if opened else port))
                listener.listen(BACKLOG)
                listener.settimeout(0)
                opened.append(listener)
        except OSError as error:
            raise SettingsError(
                f"{host}:{port} cannot be bound ({error.strerror}); set another "
                "GATEMESH_AGENT_PORT or GATEMESH_AGENT_HOST"
            ) from error
        undo.pop_all()
    return opened


@dataclass
class Place:
    """What one worker is started into, again and again."""

    index: int
    listener: socket.socket
    process: asyncio.subprocess.Process | None = None
    admin_port: int = 0
    """Where the one that runs exposes its metrics; 0 until it is ready."""
    was_ready: bool = False


@dataclass
class Supervisor:
    """Keeps one process running at each place."""

    settings: AgentSettings
    places: Sequence[Place]
    readiness: Readiness
    metrics: WorkerMetrics = field(init=False)

    def __post_init__(self) -> None:
        self.metrics = WorkerMetrics(self.read_metrics)

    async def keep(self, place: Place) -> None:
        """Run the worker of one place until cancelled.

        Raises:
            SettingsError: it could not start with these settings.
        """
        pause_s = FIRST_PAUSE_S
        loop = asyncio.get_running_loop()
        while True:
            begun_s = loop.time()
            code = await self._run(place)
            self.metrics.ended(place.index)
            if code == EXIT_SETTINGS and not place.was_ready:
                raise SettingsError(f"worker {place.index} could not start; its message is above")
            lived = loop.time() - begun_s > LIVED_S
            pause_s = FIRST_PAUSE_S if lived else min(2 * pause_s, LONGEST_PAUSE_S)
            extra = {"worker": place.index, "code": code, "again_in_s": pause_s}
            log.error("worker_ended", extra=extra)
            await asyncio.sleep(pause_s)

    async def _run(self, place: Place) -> int:
        """Run one life of a worker and return its exit code."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                place.process = await self._start(place, theirs)
            try:
                await self._hear(place, ours)
                return await place.process.wait()
            finally:
                place.admin_port = 0
                self.readiness.set(need_of(place), met=False)

    async def _start(self, place: Place, link: socket.socket) -> asyncio.subprocess.Process:
        descriptors = (place.listener.fileno(), link.fileno())
        command = (sys.executable, "-m", "gatemesh_agent", "--worker", str(place.index))
        return await asyncio.create_subprocess_exec(
            *command,
            *("--listen-fd", str(descriptors[0]), "--link-fd", str(descriptors[1])),
            pass_fds=descriptors,
            # All workers must hash alike, a random key too.
            env={**os.environ, FINGERPRINT_KEY: self.settings.hash_key.decode()},
        )

    async def _hear(self, place: Place, link: socket.socket) -> None:
        """Take in where a worker exposes its metrics, once it serves; return when it ends."""
        link.settimeout(0)
        reader, writer = await asyncio.open_connection(sock=link)
        try:
            line = await reader.readline()
            if line:
                place.admin_port, place.was_ready = int(json.loads(line)["admin_port"]), True
                self.readiness.set(need_of(place), met=True)
                await reader.read()
        finally:
            writer.close()

    def read_metrics(self) -> Mapping[int, str]:
        """Return what each worker exposes that can be read now."""
        pages: dict[int, str] = {OWN: generate_latest(REGISTRY).decode()}
        for place in self.places:
            if place.admin_port:
                url = f"http://127.0.0.1:{place.admin_port}/metrics"
                with (
                    suppress(OSError, HTTPException),
                    urllib.request.urlopen(url, timeout=READ_S) as answer,
                ):
                    pages[place.index] = answer.read().decode()
        return pages

    async def stop(self) -> None:
        """Have every worker end its running requests, and end what does not go."""
        for place in self.places:
            place.listener.close()
        processes = [place.process for place in self.places if place.process is not None]
        for process in processes:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self.settings.stop_grace_s + STOP_EXTRA_S):
                await asyncio.gather(*(process.wait() for process in processes))
        except TimeoutError:
            for process in processes:
                with suppress(ProcessLookupError):
                    process.kill()


FINGERPRINT_KEY = "GATEMESH_AGENT_FINGERPRINT_KEY"


def need_of(place: Place) -> str:
    """Return what readiness calls a worker."""
    return f"worker-{place.index}"


async def supervise(settings: AgentSettings) -> None:
    """Run the workers until told to stop.

    Raises:
        SettingsError: a port is taken, or a worker cannot start.
    """
    stop = stop_requested()
    count = settings.worker_count
    sockets = listeners(settings.host, settings.port, count)
    places = [Place(index, listener) for index, listener in enumerate(sockets)]
    readiness = Readiness(*map(need_of, places))
    supervisor = Supervisor(settings, places, readiness)
    registry = registry_of(supervisor.metrics)
    start_admin_server(settings.admin_host, settings.admin_port, readiness, registry)
    host, port = sockets[0].getsockname()[:2]
    try:
        await first_to_end(
            stop.wait(),
            tell_when_ready(settings, readiness, f"http://{host}:{port}"),
            *(supervisor.keep(place) for place in places),
        )
    finally:
        await supervisor.stop()
    log.info("agent_stopped", extra={"agent_id": settings.id})


async def tell_when_ready(settings: AgentSettings, readiness: Readiness, address: str) -> None:
    """Say once that all workers serve; then wait for ever."""
    while readiness.missing():  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    workers = [worker_id(settings.id, index) for index in range(settings.worker_count)]
    extra = {"address": address, "agent_id": settings.id, "workers": workers}
    log.info("agent_ready", extra=extra)
    await asyncio.Event().wait()
