"""Real load balancers with the example configurations, and the fake, under one handle."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from gatemesh_executor.backends.process_group import living_members, read_stat
from gatemesh_executor.balancers.base import Balancer, Server
from gatemesh_executor.balancers.config import HaproxySettings, Listing, NginxSettings
from gatemesh_executor.balancers.fake import FakeBalancer
from gatemesh_executor.balancers.haproxy import Haproxy
from gatemesh_executor.balancers.nginx import Nginx
from gatemesh_executor.balancers.nginx_processes import serving_workers
from gatemesh_executor.pace import Pace
from gatemesh_mesh.suite import BALANCERS_VARIABLE

from .conftest import eventually

EXAMPLES = Path(__file__).parents[3] / "deploy" / "balancers"
PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))


def program(name: str) -> str | None:
    """Return where a program is; None where it is not installed."""
    return shutil.which(name, path=PATH)


UNAVAILABLE = os.environ.get(BALANCERS_VARIABLE, "install it with apt-get")
"""What `./mesh test` says when it could not install them."""


def needs(name: str) -> pytest.MarkDecorator:
    """Skip where a program is missing, with the reason."""
    return pytest.mark.skipif(
        program(name) is None, reason=f"{name} is not installed: {UNAVAILABLE}"
    )


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def thread_states(group: int) -> list[str]:
    """Return the state of every thread of a process group, as the kernel writes it."""
    tasks = [Path(f"/proc/{member.pid}/task") for member in living_members(group)]
    found = [read_stat(int(task.name), folder) for folder in tasks for task in folder.iterdir()]
    return [thread.state for thread in found if thread is not None]


def fitted(name: str, changes: Mapping[str, str]) -> str:
    """Return an example with its paths and addresses replaced; each of them must be there."""
    text = (EXAMPLES / name).read_text()
    for old, new in changes.items():
        assert old in text, f"{name} does not hold {old!r}"
        text = text.replace(old, new)
    return text


class BalancerRig(Protocol):
    """A balancer with two servers, both in rotation."""

    @property
    def balancer(self) -> Balancer:
        """The balancer under test."""

    @property
    def servers(self) -> tuple[Server, Server]:
        """The servers as it knows them."""

    async def reload(self) -> None:
        """Have the balancer read its configuration anew, as an operator does."""

    def go_away(self) -> None:
        """Make it deaf to orders; requests still pass."""

    def come_back(self) -> None:
        """Make it hear again."""


class RealRig(BalancerRig, Protocol):
    """One that requests pass through."""

    url: str

    def listings(self) -> tuple[Listing, Listing]:
        """Return how the instances file would list the servers."""

    def table(self) -> str:
        """Return how the instances file would describe the balancer."""


class FakeRig:
    """The fake."""

    def __init__(self) -> None:
        self.balancer = FakeBalancer()
        self.servers = (Server("chat", "engine-0"), Server("chat", "engine-1"))

    async def reload(self) -> None:
        """Forget everything."""
        self.balancer.forget()

    def go_away(self) -> None:
        """Answer nothing."""
        self.balancer.down = True

    def come_back(self) -> None:
        """Answer again."""
        self.balancer.down = False


class Daemon:
    """A program with a folder of its own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gm-"))
        # nginx's workers are another user.
        self.folder.chmod(0o755)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, *command: str) -> None:
        """Start it and wait until it accepts connections."""
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        eventually(self._accepts)

    @property
    def pid(self) -> int:
        """Number of its master."""
        assert self._process is not None
        return self._process.pid

    def close(self) -> None:
        """End its whole group and remove its folder."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def _accepts(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


class HaproxyRig(Daemon):
    """A real HAProxy with `deploy/balancers/haproxy.cfg`."""

    def __init__(self, addresses: tuple[str, str], deadline_s: float = 5.0) -> None:
        super().__init__()
        self.socket = self.folder / "admin.sock"
        settings = HaproxySettings(
            kind="haproxy", socket=f"unix://{self.socket}", deadline_s=deadline_s
        )
        self.balancer = Haproxy("front", settings)
        self.servers = (Server("chat", "engine-0"), Server("chat", "engine-1"))
        changes = {
            "/run/haproxy/admin.sock": str(self.socket),
            "127.0.0.1:8080": f"127.0.0.1:{self.port}",
            "127.0.0.1:8000": addresses[0],
            "127.0.0.1:8001": addresses[1],
        }
        (self.folder / "haproxy.cfg").write_text(fitted("haproxy.cfg", changes))

    def start(self) -> "HaproxyRig":
        """Run it."""
        self.run(str(program("haproxy")), "-f", str(self.folder / "haproxy.cfg"))
        eventually(self.socket.exists)
        return self

    def listings(self) -> tuple[Listing, Listing]:
        """Return how the instances file would list the servers."""
        first, second = self.servers
        return (
            Listing(name="front", backend=first.backend, server=first.name),
            Listing(name="front", backend=second.backend, server=second.name),
        )

    def table(self) -> str:
        """Return how the instances file would describe the balancer."""
        return f'[balancers.front]\nkind = "haproxy"\nsocket = "unix://{self.socket}"\n'

    async def reload(self) -> None:
        """Send SIGUSR2 to the master, and wait until another worker answers on the socket."""
        before = await self._worker()
        async with asyncio.timeout(60):
            # A master that has only just started misses the first one.
            while not await self._reloaded(before):
                pass

    def go_away(self) -> None:
        """Take the socket's name away."""
        self.socket.rename(self.folder / "hidden.sock")

    def come_back(self) -> None:
        """Give it back."""
        (self.folder / "hidden.sock").rename(self.socket)

    def freeze(self) -> None:
        """Stop every process of it where it stands; return when none of their threads runs."""
        os.killpg(self.pid, signal.SIGSTOP)
        eventually(lambda: all(state == "T" for state in thread_states(self.pid)))

    def weaken(self) -> None:
        """Take the socket's right to change anything, before the start."""
        conf = self.folder / "haproxy.cfg"
        conf.write_text(conf.read_text().replace("level admin", "level user"))

    def also_over_tcp(self) -> Haproxy:
        """Add a second socket before the start, and return a handle that uses it."""
        address = f"127.0.0.1:{free_port()}"
        conf = self.folder / "haproxy.cfg"
        line = f"global\n    stats socket ipv4@{address} level admin\n"
        conf.write_text(conf.read_text().replace("global\n", line))
        return Haproxy("far", HaproxySettings(kind="haproxy", socket=f"tcp://{address}"))

    async def say(self, command: str) -> str:
        """Speak to the socket as an operator would."""
        reader, writer = await asyncio.open_unix_connection(self.socket)
        writer.write(f"{command}\n".encode())
        answer = await reader.read(-1)
        writer.close()
        return answer.decode()

    async def _reloaded(self, before: str) -> bool:
        os.kill(self.pid, signal.SIGUSR2)
        for _ in range(100):
            if await self._worker() not in (before, ""):
                return True
            await asyncio.sleep(0.05)
        return False

    async def _worker(self) -> str:
        try:
            # The old worker may go without a word to those who wait at its socket.
            lines = (await asyncio.wait_for(self.say("show info"), 2.0)).splitlines()
        except (OSError, TimeoutError):
            return ""
        return next((line for line in lines if line.startswith("Pid:")), "")


class NginxRig(Daemon):
    """A real nginx with `deploy/balancers/nginx.conf`."""

    def __init__(
        self,
        addresses: tuple[str, str],
        *,
        deadline_s: float = 60.0,
        weight_pause_s: float = 0.0,
        tests: bool = True,
    ) -> None:
        super().__init__()
        self.upstream_file = self.folder / "chat.servers"
        self.extra = self.folder / "extra.conf"
        self.pid_file = self.folder / "nginx.pid"
        conf = self.folder / "nginx.conf"
        self._command = (str(program("nginx")), "-e", str(self.folder / "error"), "-c", str(conf))
        settings = NginxSettings(
            kind="nginx",
            upstream_file=self.upstream_file,
            pid_file=self.pid_file,
            test=(*self._command, "-t", "-q") if tests else ("true",),
            deadline_s=deadline_s,
            weight_pause_s=weight_pause_s,
        )
        self.balancer = Nginx("edge", settings, Pace())
        self.servers = (Server("", addresses[0]), Server("", addresses[1]))
        self._write(conf, addresses)

    def start(self) -> "NginxRig":
        """Run it."""
        self.run(*self._command, "-g", "daemon off;")
        return self

    def listings(self) -> tuple[Listing, Listing]:
        """Return how the instances file would list the servers."""
        first, second = self.servers
        return Listing(name="edge", server=first.name), Listing(name="edge", server=second.name)

    def table(self) -> str:
        """Return how the instances file would describe the balancer."""
        return (
            '[balancers.edge]\nkind = "nginx"\n'
            f'upstream_file = "{self.upstream_file}"\npid_file = "{self.pid_file}"\n'
            f"test = {json.dumps([*self._command, '-t', '-q'])}\ndeadline_s = 30\n"
        )

    async def reload(self) -> None:
        """Send SIGHUP to the master, and wait until other workers serve."""
        before = serving_workers(self.pid)
        os.kill(self.pid, signal.SIGHUP)
        async with asyncio.timeout(60):
            while not (serving := serving_workers(self.pid)) or serving & before:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    def go_away(self) -> None:
        """Take away what says where the master is."""
        self.pid_file.rename(self.folder / "hidden.pid")

    def come_back(self) -> None:
        """Give it back."""
        (self.folder / "hidden.pid").rename(self.pid_file)

    def _write(self, conf: Path, addresses: tuple[str, str]) -> None:
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        folders = "".join(f"    {kind}_temp_path {self.folder / kind};\n" for kind in kinds)
        more = f"http {{\n{folders}    access_log off;\n    include {self.extra};\n"
        changes = {
            "/run/nginx.pid": str(self.pid_file),
            "/etc/nginx/gatemesh/chat.servers": str(self.upstream_file),
            "127.0.0.1:8080": f"127.0.0.1:{self.port}",
            "http {\n": more,
        }
        conf.write_text(fitted("nginx.conf", changes))
        self.extra.write_text("")
        servers = {"127.0.0.1:8000": addresses[0], "127.0.0.1:8001": addresses[1]}
        self.upstream_file.write_text(fitted("chat.servers", servers))
