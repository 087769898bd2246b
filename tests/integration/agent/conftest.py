"""Two simulated engines for all of the agent's tests, clean again for each test."""

import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from typing import TextIO

import pytest

NAMES = ("engine-0", "engine-1")


def drain(output: TextIO) -> None:
    """Read to the end, forget it, and close it."""
    with output:
        for _ in output:
            pass


def start_engine(name: str, *more: str) -> tuple[subprocess.Popen[str], str]:
    """Start a simulated engine on a free port; return process and address."""
    command = [sys.executable, "-m", "gatemesh_engine_sim", "--port", "0", "--name", name, *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if "engine_ready" in line:
            # Unread, its log would fill the pipe, and the engine would wait for ever.
            threading.Thread(target=drain, args=(process.stdout,), daemon=True).start()
            return process, line.split("engine_ready ")[1].strip()
    raise AssertionError(f"{name} ended before it was ready")


@pytest.fixture(scope="session")
def engine_processes() -> Iterator[dict[str, str]]:
    """Run two simulated engines; return their addresses by name."""
    started = {name: start_engine(name) for name in NAMES}
    yield {name: address for name, (_, address) in started.items()}
    for process, _ in started.values():
        process.kill()
        process.wait()


@pytest.fixture
def engines(engine_processes: dict[str, str]) -> dict[str, str]:
    """Return the addresses of two clean engines."""
    for address in engine_processes.values():
        request = urllib.request.Request(f"{address}/sim/fault", method="DELETE")  # noqa: S310
        with urllib.request.urlopen(request, timeout=10):  # noqa: S310
            pass
    return engine_processes
