"""Reading supervisord's answers, and what is said to it."""

from datetime import UTC, datetime
from signal import SIGINT, SIGKILL, SIGTERM
from typing import Any
from xmlrpc.client import Fault

import pytest

from gatemesh_executor.backends.base import (
    BackendUnavailableError,
    Ending,
    Observation,
    Phase,
    StartFailedError,
    StopFailedError,
)
from gatemesh_executor.backends.supervisor import (
    PHASES,
    ProcessState,
    SupervisorBackend,
    config_faults,
    full_name,
    observation,
    pid_of,
)

from .conftest import INSTANCES, Time

ENGINE = INSTANCES["engine-0"]
CONFIG = {
    "group": "engine-0",
    "name": "engine-0",
    "killasgroup": True,
    "stopwaitsecs": 60,
    "stopsignal": int(SIGTERM),
}


def info(state: ProcessState, pid: int = 0, exit_status: int = 0) -> dict[str, Any]:
    """Return a process info struct."""
    return {
        "group": "engine-0",
        "name": "engine-0",
        "state": int(state),
        "pid": pid,
        "start": 1_700_000_000,
        "exitstatus": exit_status,
    }


class FakeDaemon:
    """Answers with a script: the states to be told one after the other, the last one for ever."""

    def __init__(self, *infos: dict[str, Any]) -> None:
        self._infos = list(infos)
        self.asked: list[str] = []
        self.faults: dict[str, Fault] = {}

    async def call(self, method: str, *arguments: Any) -> Any:
        """Answer one call."""
        word = method.removeprefix("supervisor.")
        self.asked.append(word)
        if word in self.faults:
            raise self.faults[word]
        if word == "getProcessInfo":
            return self._infos.pop(0) if len(self._infos) > 1 else self._infos[0]
        return {"getAllConfigInfo": [CONFIG], "getAllProcessInfo": self._infos}.get(word, True)


def backend(daemon: FakeDaemon, time: Time) -> SupervisorBackend:
    """Return a backend that cannot look at processes."""
    return SupervisorBackend(daemon, {"engine-0": ENGINE}, 60.0, local=False, pace=time.pace)


def test_every_state_of_supervisor_has_a_phase() -> None:
    """A state without one would stop the observer."""
    assert set(PHASES) == set(ProcessState)


@pytest.mark.parametrize("state", list(ProcessState))
def test_a_life_is_pid_and_start(state: ProcessState) -> None:
    """Whatever the state, a pid means that a process is there."""
    found = observation(info(state, pid=17))
    assert found.life_id == "17@1700000000"
    assert found.started_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert not observation(info(state)).running


def test_an_exit_code_is_told_once_there_is_one() -> None:
    """A program that never ended has none."""
    assert observation(info(ProcessState.EXITED)).exit_code == 0
    assert observation(info(ProcessState.STOPPED, exit_status=-1)).exit_code == -1
    assert observation(info(ProcessState.FATAL)).exit_code is None


@pytest.mark.parametrize(
    ("life_id", "pid"), [("17@5", 17), (None, None), ("", None), ("pod-1", None), ("x@5", None)]
)
def test_the_pid_in_a_life(life_id: str | None, pid: int | None) -> None:
    """Lives named by another backend have none."""
    assert pid_of(life_id) == pid


def test_a_program_alone_is_its_own_group() -> None:
    """As supervisor names them."""
    assert full_name("a") == "a:a"
    assert full_name("g:a") == "g:a"


@pytest.mark.parametrize(
    ("setting", "value", "named"),
    [
        ("killasgroup", False, "killasgroup"),
        ("stopwaitsecs", 59, "stopwaitsecs is 59, must be at least 60"),
        ("stopsignal", int(SIGKILL), "stopsignal"),
        ("stopasgroup", True, "stopasgroup"),
        ("autorestart", True, "autorestart"),
    ],
)
def test_a_broken_promise_names_program_and_setting(
    setting: str, value: object, named: str
) -> None:
    """The operator edits that line."""
    [fault] = config_faults(ENGINE, {**CONFIG, setting: value}, 60.0)
    assert named in fault
    assert "'engine-0'" in fault


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_good_program_has_no_faults(number: int) -> None:
    """At its limits."""
    assert config_faults(ENGINE, {**CONFIG, "stopsignal": int(number)}, 60.0) == []


async def test_a_start_that_runs_already_is_fine() -> None:
    """Redelivered."""
    daemon = FakeDaemon(info(ProcessState.RUNNING, 17))
    daemon.faults["startProcess"] = Fault(60, "ALREADY_STARTED")
    await backend(daemon, Time()).start(ENGINE)


@pytest.mark.parametrize("code", [20, 21, 30, 40, 50])
async def test_other_faults_of_a_start_fail_it(code: int) -> None:
    """No file, not executable, spawn error and so on."""
    daemon = FakeDaemon(info(ProcessState.EXITED))
    daemon.faults["startProcess"] = Fault(code, "SPAWN_ERROR: engine-0")
    with pytest.raises(StartFailedError, match="SPAWN_ERROR"):
        await backend(daemon, Time()).start(ENGINE)


async def test_a_start_waits_for_a_stop_under_way() -> None:
    """Supervisor would answer with an error."""
    stopping = info(ProcessState.STOPPING, 17)
    daemon = FakeDaemon(stopping, stopping, info(ProcessState.STOPPED))
    await backend(daemon, Time()).start(ENGINE)
    assert daemon.asked[-2:] == ["getProcessInfo", "startProcess"]


async def test_a_stop_that_never_ends_fails_the_start() -> None:
    """Past supervisor's own kill there is no hope."""
    daemon = FakeDaemon(info(ProcessState.STOPPING, 17))
    time = Time()
    with pytest.raises(StopFailedError):
        await backend(daemon, time).start(ENGINE)
    assert 70 <= time.elapsed_s < 71


async def test_a_process_that_leaves_is_not_killed() -> None:
    """Its exit code does not matter when it was quick."""
    running = info(ProcessState.RUNNING, 17)
    daemon = FakeDaemon(running, running, info(ProcessState.STOPPED, exit_status=-1))
    assert await backend(daemon, Time()).stop(ENGINE, "17@1700000000", 5.0) is Ending.LEFT


async def test_supervisors_own_kill_is_noticed() -> None:
    """A signal after stopwaitsecs; supervisor does not say which."""
    running = info(ProcessState.RUNNING, 17)
    stopped = info(ProcessState.STOPPED, exit_status=-1)
    daemon = FakeDaemon(running, *[running] * 1201, stopped)
    assert await backend(daemon, Time()).stop(ENGINE, None, 5.0) is Ending.KILLED


async def test_a_stop_under_way_is_not_asked_for_again() -> None:
    """Redelivered while the engine drains."""
    stopping = info(ProcessState.STOPPING, 17)
    daemon = FakeDaemon(stopping, stopping, info(ProcessState.STOPPED))
    assert await backend(daemon, Time()).stop(ENGINE, None, 5.0) is Ending.LEFT
    assert "stopProcess" not in daemon.asked


async def test_a_process_that_outlives_everything_is_told() -> None:
    """It hangs in the kernel; a person must look."""
    daemon = FakeDaemon(info(ProcessState.STOPPING, 17))
    with pytest.raises(StopFailedError, match="SIGKILL"):
        await backend(daemon, Time()).stop(ENGINE, None, 5.0)


async def test_an_unknown_program_is_seen_as_failed() -> None:
    """It was removed from supervisord while we run."""
    daemon = FakeDaemon({**info(ProcessState.RUNNING, 17), "name": "other"})
    observed = await backend(daemon, Time()).observe_all()
    assert observed == {"engine-0": Observation(Phase.FAILED)}


async def test_a_fault_of_a_look_is_silence() -> None:
    """Nothing is known of a program that supervisord cannot name."""
    daemon = FakeDaemon(info(ProcessState.RUNNING, 17))
    daemon.faults["getProcessInfo"] = Fault(10, "BAD_NAME")
    with pytest.raises(BackendUnavailableError, match="BAD_NAME"):
        await backend(daemon, Time()).start(ENGINE)


async def test_a_stop_that_came_too_late_is_fine() -> None:
    """The process ended in between."""
    daemon = FakeDaemon(info(ProcessState.RUNNING, 17), info(ProcessState.EXITED))
    daemon.faults["stopProcess"] = Fault(70, "NOT_RUNNING")
    assert await backend(daemon, Time()).stop(ENGINE, None, 5.0) is Ending.LEFT
    daemon = FakeDaemon(info(ProcessState.RUNNING, 17))
    daemon.faults["stopProcess"] = Fault(30, "FAILED")
    with pytest.raises(BackendUnavailableError, match="FAILED"):
        await backend(daemon, Time()).stop(ENGINE, None, 5.0)
