"""A real engine per worker, and a second one; skipped with a reason where there are none."""

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gatemesh_mesh.drills import Drill, end_drill, start_drill
from gatemesh_mesh.engine_machine import pick_cores, usable_cores
from gatemesh_mesh.real_engine import (
    EngineLayout,
    EngineOptions,
    engine_command,
    is_installed,
    layout_of,
)
from gatemesh_mesh.stack import REPOSITORY
from gatemesh_mesh.state import state_folder

START_DEADLINE_S = 400
MODEL = "smollm2-135m"


@dataclass
class Answer:
    """What came back for one request, byte for byte."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as one JSON value."""
        return json.loads(self.body)

    def events(self) -> list[dict[str, Any]]:
        """The events of a stream, without the closing mark."""
        lines = [line for line in self.body.decode().split("\n\n") if line.startswith("data: {")]
        return [json.loads(line.removeprefix("data: ")) for line in lines]

    def entries(self) -> list[dict[str, Any]]:
        """The logprob entries of the first choice of a chat answer, streamed or not."""
        parts = self.events() if self.headers["content-type"].startswith("text/") else [self.json()]
        lists = [choice["logprobs"] for part in parts for choice in part["choices"]]
        return [entry for found in lists if found for entry in found["content"]]


@dataclass
class RunningEngine:
    """One real engine: its process, its files, and how to ask it."""

    layout: EngineLayout
    options: EngineOptions
    log_file: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        """Start one life of the engine; returns at once."""
        command = engine_command(self.layout, self.options)
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                command.argv,
                env={**os.environ, **command.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def await_ready(self) -> None:
        """Return when it answers; fail with the end of its log when it does not in time."""
        deadline = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if self.get("/health").status == http.client.OK:
                    return
            except OSError:
                time.sleep(0.2)
        pytest.fail(f"the engine did not start:\n{self.log_file.read_text()[-3000:]}")

    def kill(self) -> None:
        """End the whole process group at once."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.process.wait()

    def get(self, path: str) -> Answer:
        """Ask for one resource."""
        return self._ask("GET", path, None)

    def post(self, path: str, body: dict[str, Any]) -> Answer:
        """Send one request and wait for the whole answer."""
        return self._ask("POST", path, json.dumps(body).encode())

    def chat(self, prompt: str, **more: Any) -> Answer:
        """Ask one chat question, greedily unless said otherwise."""
        messages = [{"role": "user", "content": prompt}]
        body = {"model": MODEL, "messages": messages, "temperature": 0, "max_tokens": 24, **more}
        return self.post("/v1/chat/completions", body)

    @contextmanager
    def drill(self, fault: str, **more: Any) -> Iterator[None]:
        """Spoil the answers of this life while the block runs."""
        assert self.options.chaos_file
        start_drill(self.options.chaos_file, Drill(fault, **{"pgid": self.process.pid, **more}))
        try:
            self._let_it_look()
            yield
        finally:
            end_drill(self.options.chaos_file)
            self._let_it_look()

    def _let_it_look(self) -> None:
        # The engine looks at the file at most every 50 ms, and only while it computes a step.
        time.sleep(0.06)

    def _ask(self, method: str, path: str, body: bytes | None) -> Answer:
        link = http.client.HTTPConnection("127.0.0.1", self.options.port, timeout=120)
        try:
            link.request(method, path, body, {"content-type": "application/json"})
            response = link.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())
        finally:
            link.close()


@pytest.fixture(scope="session")
def layout() -> EngineLayout:
    """Where the real engine lies; skips the test where it is not installed."""
    folder = state_folder(os.environ, REPOSITORY)
    if not is_installed(folder):
        pytest.skip(f"no real engine in {folder.root}: `./mesh test` installs it")
    return layout_of(folder)


@pytest.fixture(scope="session")
def core() -> int:
    """The core of this worker's engines: two on one core starve each other."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    return pick_cores(usable_cores(), int(worker.removeprefix("gw")) + 1)[-1]


@pytest.fixture(scope="session")
def engine(
    layout: EngineLayout, core: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningEngine]:
    """One real engine, with drills and figures switched on."""
    folder = tmp_path_factory.mktemp("first")
    with running_engine(layout, with_drills(core, folder), folder) as started:
        yield started


@pytest.fixture(scope="module")
def second_engine(
    layout: EngineLayout, core: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningEngine]:
    """Another one like it, on another core where there is one."""
    other = next((each for each in usable_cores() if each != core), core)
    folder = tmp_path_factory.mktemp("second")
    with running_engine(layout, with_drills(other, folder), folder) as started:
        yield started


@pytest.fixture
def engine_port(engine: RunningEngine) -> int:
    """Where the engine listens."""
    return engine.options.port


def with_drills(core: int, folder: Path) -> EngineOptions:
    """Return how an engine is started with drills and figures switched on."""
    return EngineOptions(
        port=free_port(),
        cpu_core=core,
        chaos_file=folder / "drill.json",
        plugin_file=folder / "figures.jsonl",
    )


@contextmanager
def running_engine(
    layout: EngineLayout, options: EngineOptions, folder: Path
) -> Iterator[RunningEngine]:
    """Run an engine while the block runs; its log lies in the folder."""
    started = RunningEngine(layout, options, folder / "engine.log")
    started.start()
    try:
        started.await_ready()
        yield started
    finally:
        started.kill()


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
