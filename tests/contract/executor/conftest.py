"""A real supervisord with small programs as engines."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from xmlrpc.client import Error as XmlRpcError
from xmlrpc.client import ServerProxy

import pytest
from supervisor.xmlrpc import SupervisorTransport

from .kube_cluster import CLUSTERS, Cluster, fake_cluster, real_cluster

ENGINE = Path(__file__).parent / "engine_program.py"
USER, PASSWORD = "mesh", "secret"
GOOD = "stopsignal=TERM\nstopwaitsecs=60\nkillasgroup=true\nautorestart=false\nautostart=false"

SLOW_FORKS = """
import os, time
real = os.setpgrp
def setpgrp():
    time.sleep({seconds})
    real()
os.setpgrp = setpgrp
"""


def eventually(holds: Callable[[], bool], deadline_s: float = 30.0) -> None:
    """Wait until something outside of this process holds; fail when it does not."""
    end = time.monotonic() + deadline_s
    while not holds():
        assert time.monotonic() < end, "it did not come to hold in time"
        time.sleep(0.02)


class Supervisord:
    """A supervisord in a folder of its own; programs are given by their configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "s.sock"
        self.url = f"unix://{self.socket}"
        self.tcp_port = 0
        self._environment = dict(os.environ)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, programs: dict[str, str], extra: str = "") -> None:
        """Start with these programs: name to the lines of its section."""
        sections = [f"[program:{name}]\n{lines}\n" for name, lines in programs.items()]
        text = "\n".join((self._head(), extra, *sections))
        (self.folder / "supervisord.conf").write_text(text)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "supervisor.supervisord", "-c", "supervisord.conf"],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        eventually(self._answers)

    def slow_forks(self, seconds: float) -> None:
        """Before the start: let a fork wait so long before it becomes its program, as under load.

        The first thing that a fork of supervisord does is to call `setpgrp`.
        """
        folder = self.folder / "slow_forks"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(SLOW_FORKS.format(seconds=seconds))
        self._environment["PYTHONPATH"] = str(folder)

    def command(self, *arguments: str) -> str:
        """Return the `command=` line of an engine with these arguments."""
        return f"command={sys.executable} {ENGINE} {' '.join(arguments)}"

    def call(self, method: str, *arguments: object) -> object:
        """Call supervisord directly."""
        transport = SupervisorTransport(USER, PASSWORD, self.url)
        with ServerProxy("http://127.0.0.1", transport=transport) as server:
            return getattr(server, method)(*arguments)

    def stop(self) -> None:
        """Kill every program's group, then end supervisord."""
        if self._process is None:
            return
        for info in self.call("supervisor.getAllProcessInfo"):  # type: ignore[attr-defined]
            if info["pid"]:
                os.killpg(info["pid"], 9)
        self._process.terminate()
        self._process.wait(30)
        self._process = None

    def kill(self) -> None:
        """End supervisord at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "supervisord ended"
        try:
            self.call("supervisor.getState")
        except (OSError, XmlRpcError):
            return False
        return True

    def _head(self) -> str:
        login = f"username={USER}\npassword={PASSWORD}"
        return (
            f"[unix_http_server]\nfile={self.socket}\n{login}\n"
            "[supervisord]\nnodaemon=true\nsilent=true\nlogfile=log\npidfile=pid\n"
            "[rpcinterface:supervisor]\n"
            "supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface\n"
        )


@contextmanager
def running_supervisord() -> Iterator[Supervisord]:
    """Give a supervisord that is not started yet; its folder's path fits a socket's name."""
    folder = Path(tempfile.mkdtemp(prefix="gm-"))
    daemon = Supervisord(folder)
    try:
        yield daemon
    finally:
        daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def supervisord() -> Iterator[Supervisord]:
    """Give a supervisord of this test's own."""
    with running_supervisord() as daemon:
        yield daemon


@pytest.fixture(params=CLUSTERS)
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster]:
    """Give a namespace of the fake API server, and of the real one where it is named."""
    opened = fake_cluster if request.param == "fake" else real_cluster
    async with opened(tmp_path) as found:
        yield found
