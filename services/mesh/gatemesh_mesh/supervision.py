"""One supervisord: started, told what to run, asked how it goes, and ended with all it runs."""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from xmlrpc.client import Error as XmlRpcError
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import SupervisorTransport

from gatemesh_mesh.errors import ProgramFailedError
from gatemesh_mesh.processes import MARK_VARIABLE, ProcessId, end_all, find_marked, identify
from gatemesh_mesh.programs import DaemonSpec, ProgramSpec, render_configuration
from gatemesh_mesh.state import StateFolder, make_private, write_private
from gatemesh_mesh.waiting import wait_until

USER = "gatemesh"
START_DEADLINE_S = 60.0
PATIENCE_S = 90.0
"""How long a stop may take: an engine drains for 60 s, and is killed then."""

ALREADY_STARTED, NOT_RUNNING = 60, 70
"""Fault codes of supervisord that mean the wish is fulfilled already."""

GONE = {"STOPPED", "EXITED", "FATAL", "BACKOFF", "UNKNOWN"}


@dataclass(frozen=True)
class ProgramStatus:
    """How one program is, as supervisord sees it."""

    name: str
    state: str
    pid: int
    uptime_s: int


class Supervision:
    """The supervisord of one state folder."""

    def __init__(self, folder: StateFolder) -> None:
        self.folder = folder
        secrets = folder.secrets()
        self.url = f"unix://{folder.supervisor_socket}"
        self.user = USER
        self.password = secrets["supervisor"]
        self._mark = secrets["mark"]
        self._programs: dict[str, ProgramSpec] = {}
        self._daemon: subprocess.Popen[bytes] | None = None

    def start(self, environment: Mapping[str, str] | None = None) -> ProcessId:
        """Start supervisord with no program in it, and wait until it answers.

        Raises:
            ProgramFailedError: it ended, or did not answer in time.
        """
        self._write_configuration()
        make_private(self.folder.supervisor_socket.parent)
        log = self.folder.supervisor / "console.log"
        with log.open("wb") as output:
            self._daemon = subprocess.Popen(
                [
                    *(sys.executable, "-m", "gatemesh_mesh.supervisord", str(os.getpid())),
                    *("-c", str(self._configuration)),
                ],
                cwd="/",
                env={**os.environ, **(environment or {}), MARK_VARIABLE: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if not wait_until(lambda: self._ended() or self.answers(), START_DEADLINE_S):
            raise ProgramFailedError("supervisord does not answer", f"read {log}")
        process = identify(self._daemon.pid)
        if process is None:
            raise ProgramFailedError(f"supervisord ended: {tail(log)}", f"read {log}")
        return process

    def _ended(self) -> bool:
        return self._daemon is not None and self._daemon.poll() is not None

    def answers(self) -> bool:
        """Tell whether a supervisord answers on this folder's socket."""
        try:
            self._call("supervisor.getState")
        except (OSError, HTTPException, XmlRpcError):
            return False
        return True

    def add(self, programs: Iterable[ProgramSpec]) -> None:
        """Make programs known, or replace what was known under their names; none is started."""
        self._programs |= {program.name: program for program in programs}
        self._write_configuration()
        [[added, changed, _]] = self._call("supervisor.reloadConfig")
        for name in changed:
            self.stop_program(name)
            self._call("supervisor.removeProcessGroup", name)
        for name in (*changed, *added):
            self._call("supervisor.addProcessGroup", name)

    def start_program(self, name: str) -> None:
        """Start a program; one that runs goes on."""
        self._tolerate(ALREADY_STARTED, "supervisor.startProcess", name, False)  # noqa: FBT003

    def stop_program(self, name: str) -> bool:
        """Ask a program to leave and wait until it has; False when it is still there."""
        return self.stop_programs([name])

    def stop_programs(self, names: Sequence[str], patience_s: float = PATIENCE_S) -> bool:
        """Ask programs to leave, all at once, and wait; False when one is still there."""
        for name in names:
            self._tolerate(NOT_RUNNING, "supervisor.stopProcess", name, False)  # noqa: FBT003
        return wait_until(lambda: all(self.state_of(name) in GONE for name in names), patience_s)

    def _tolerate(self, code: int, method: str, *arguments: Any) -> None:
        try:
            self._call(method, *arguments)
        except Fault as fault:
            if fault.faultCode != code:
                raise

    def state_of(self, name: str) -> str:
        """Return supervisord's word for a program's state."""
        return str(self._call("supervisor.getProcessInfo", name)["statename"])

    def statuses(self) -> list[ProgramStatus]:
        """Return how every program is, in the order of their names."""
        return [
            ProgramStatus(
                name=info["name"],
                state=info["statename"],
                pid=info["pid"],
                uptime_s=max(0, info["now"] - info["start"]) if info["pid"] else 0,
            )
            for info in self._call("supervisor.getAllProcessInfo")
        ]

    def log_of(self, name: str) -> Path:
        """Return where a program's output goes."""
        return self._programs[name].log_file

    def close(
        self, last: Collection[str] = (), before_last: Callable[[], object] = lambda: None
    ) -> list[ProcessId]:
        """End supervisord and all that it, or an earlier one here, has started; return survivors.

        Each program is stopped by its own rules, those in `last` after all others and after
        `before_last` was called. What outlives that is found by its mark.
        """
        try:
            self._stop_in_order(last, before_last)
            self._call("supervisor.shutdown")
        except (OSError, HTTPException, XmlRpcError):
            self._terminate()
        wait_until(lambda: not self._still_there(), PATIENCE_S)
        survivors = end_all(find_marked(self._mark), grace_s=15.0)
        if self._daemon is not None:
            self._daemon.wait(timeout=10)
            self._daemon = None
        self._remove_socket()
        return survivors

    def _terminate(self) -> None:
        """Signal a supervisord that does not answer, as one that has only just been started."""
        if self._daemon is not None:
            self._daemon.terminate()

    def _remove_socket(self) -> None:
        socket = self.folder.supervisor_socket
        socket.unlink(missing_ok=True)
        if not socket.is_relative_to(self.folder.root):
            with suppress(OSError):
                socket.parent.rmdir()

    def _stop_in_order(self, last: Collection[str], before_last: Callable[[], object]) -> None:
        names = [status.name for status in self.statuses() if status.state not in GONE]
        # supervisord itself would stop one group after the other: slow with draining engines.
        self.stop_programs([name for name in names if name not in last])
        if ending := [name for name in names if name in last]:
            before_last()
            self.stop_programs(ending)

    def _still_there(self) -> bool:
        if self._daemon is not None:
            return self._daemon.poll() is None
        return self.answers()

    def survivors(self) -> list[ProcessId]:
        """Return the running processes that belong to this state folder."""
        return find_marked(self._mark)

    @property
    def _configuration(self) -> Path:
        return self.folder.supervisor / "supervisord.conf"

    def _write_configuration(self) -> None:
        daemon = DaemonSpec(
            socket=self.folder.supervisor_socket,
            folder=self.folder.supervisor,
            user=self.user,
            password=self.password,
            is_root=os.geteuid() == 0,
        )
        write_private(self._configuration, render_configuration(daemon, self._programs.values()))

    def _call(self, method: str, *arguments: Any) -> Any:
        # A connection per call: supervisord closes idle ones, and a stack is called seldom.
        transport = SupervisorTransport(self.user, self.password, self.url)
        with ServerProxy("http://127.0.0.1", transport=transport) as server:
            return getattr(server, method)(*arguments)


def tail(log: Path, lines: int = 8) -> str:
    """Return the end of a log file, indented for a message."""
    try:
        with log.open(errors="replace") as file:
            last = deque(file, maxlen=lines)
    except OSError:
        return "(no log)"
    return "\n    " + "    ".join(last).rstrip()
