"""A stack in the foreground: started, watched until somebody ends it, and ended whole."""

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from http.client import HTTPException
from types import FrameType
from xmlrpc.client import Error as XmlRpcError

import psycopg

from gatemesh_mesh.errors import MeshError, ProgramFailedError
from gatemesh_mesh.history import OBSERVED_IN_ROTATION, History
from gatemesh_mesh.options import StackOptions
from gatemesh_mesh.plan import StackPlan, simulated_engines
from gatemesh_mesh.postgres import plain_url
from gatemesh_mesh.processes import end_all, identify, send
from gatemesh_mesh.progress import Progress
from gatemesh_mesh.stack import MakeEngines, Stack, answers_ok, clear_leftovers
from gatemesh_mesh.state import StateFolder, demo_folder
from gatemesh_mesh.supervision import Supervision
from gatemesh_mesh.waiting import wait_until

WATCH_INTERVAL_S = 1.0
HOLDER_DEADLINE_S = 120.0
PROBATION_DEADLINE_S = 120.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stop_requests() -> Iterator[None]:
    """Turn SIGTERM and a closed terminal into KeyboardInterrupt, as Ctrl-C is."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, on_signal) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def running_stack(
    folder: StateFolder,
    options: StackOptions,
    progress: Progress,
    make_engines: MakeEngines = simulated_engines,
) -> Iterator[tuple[Stack, StackPlan]]:
    """Hold the folder and run a stack while the block runs; a second Ctrl-C kills at once.

    Raises:
        MeshError: it did not start, or left a process.
    """
    folder.create()
    with folder.hold():
        stack = Stack(folder, options, progress)
        try:
            yield stack, stack.start(make_engines)
        finally:
            close_or_kill(stack)


def close_or_kill(stack: Stack) -> None:
    """End the stack by its own rules; a further Ctrl-C while that lasts ends it by force."""
    try:
        stack.close()
    except KeyboardInterrupt:
        end_all(stack.supervision.survivors(), grace_s=0.0)


def await_first_engine(plan: StackPlan, progress: Progress, began: datetime) -> None:
    """Wait until the agent has an engine to send requests to; say so when there is none yet."""
    with progress.step("Proving the engines (probation)"):
        served = wait_until(lambda: is_served(plan, began), PROBATION_DEADLINE_S, interval_s=0.2)
    if not served:
        progress.note(
            "no engine is in rotation yet: `.venv/bin/gatemesh-ctl instances` shows why, and "
            "`.venv/bin/gatemesh-ctl request release INSTANCE` frees a quarantined one; "
            f"logs: {plan.folder.logs}"
        )


def is_served(plan: StackPlan, began: datetime) -> bool:
    """True once an engine of this start is in rotation and the agent reaches it.

    What an earlier start left in the database says nothing of engines that are new.
    """
    history = History(plain_url(plan.addresses.database_url))
    try:
        observed = history.moment(OBSERVED_IN_ROTATION, "", began)
    except psycopg.OperationalError:
        return False
    return observed is not None and answers_ok(f"{plan.agent_url}/v1/models")


def watch(stack: Stack, progress: Progress) -> None:
    """Tell when a program's state changes, until KeyboardInterrupt.

    Raises:
        ProgramFailedError: supervisord itself has gone.
    """
    before: dict[str, tuple[str, int]] = {}
    pause = threading.Event()
    while True:
        try:
            after = {one.name: (one.state, one.pid) for one in stack.supervision.statuses()}
        except (OSError, HTTPException, XmlRpcError):
            raise ProgramFailedError(
                "supervisord has gone, and what it ran with it",
                f"read {stack.folder.supervisor / 'supervisord.log'}, then start again",
            ) from None
        for line in changes(before, after):
            progress.note(line)
        before = after
        pause.wait(WATCH_INTERVAL_S)


def changes(
    before: Mapping[str, tuple[str, int]], after: Mapping[str, tuple[str, int]]
) -> list[str]:
    """Return one line per program that is not as it was; nothing at the first look."""
    return [
        f"{name}: {state.lower()}" + (f", process {pid}" if pid else "")
        for name, (state, pid) in after.items()
        if before and before.get(name) != (state, pid)
    ]


def stop_everything(folder: StateFolder, progress: Progress) -> bool:
    """Leave nothing of this state folder and its demo running; False when there was nothing.

    Raises:
        MeshError: a process survived, or its holder did not let go.
    """
    stopped = [stop_one(each, progress) for each in (demo_folder(folder), folder)]
    return any(stopped)


def stop_one(folder: StateFolder, progress: Progress) -> bool:
    """Leave nothing of one state folder running; raises as `stop_everything` does."""
    if not folder.root.is_dir():
        return False
    held = folder.is_held()
    if held:
        with progress.step("Asking the running ./mesh to stop its stack"):
            ask_holder(folder)
    supervision = Supervision(folder)
    left = bool(supervision.survivors())
    clear_leftovers(supervision, progress)
    return held or left


def ask_holder(folder: StateFolder) -> None:
    """Ask the process that holds the folder to end, and wait until it has.

    Raises:
        MeshError: it did not.
    """
    pid = folder.holder_pid()
    holder = identify(pid) if pid else None
    if holder:
        send(holder, signal.SIGTERM)
    if not wait_until(lambda: not folder.is_held(), HOLDER_DEADLINE_S):
        raise MeshError(
            f"process {pid} holds {folder.root} and does not end",
            f"end it with `kill -9 {pid}`, then run `./mesh down` again",
        )
