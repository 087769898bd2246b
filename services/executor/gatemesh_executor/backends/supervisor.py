"""Engines that run as programs of a supervisord."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from signal import Signals
from typing import Any, Protocol
from xmlrpc.client import Fault

from gatemesh_common.errors import SettingsError
from gatemesh_executor.backends.base import (
    BackendUnavailableError,
    Ending,
    Observation,
    Phase,
    ProgramMissingError,
    StartFailedError,
    StopFailedError,
)
from gatemesh_executor.backends.process_group import (
    kill_group,
    living_members,
    orphans,
    read_command,
    read_stat,
)
from gatemesh_executor.backends.way_back import run_way_back
from gatemesh_executor.instances import Instance, Instances
from gatemesh_executor.pace import Pace

log = logging.getLogger(__name__)

POLL_S = 0.05
RETURN_AT_ONCE = False
"""Value of `wait` in startProcess and stopProcess."""
KILL_WAIT_S = 10.0
"""Longest wait for a process to vanish after SIGKILL."""
ORPHAN_WAIT_S = 2.0
"""Time that workers get to follow their server before they are killed."""
EXECUTE_WAIT_S = 2.0
"""Longest wait for a fork of supervisord to become its program, before a stop is asked for."""
ALREADY_STARTED = 60
NOT_RUNNING = 70
GRACEFUL_SIGNALS = (Signals.SIGTERM, Signals.SIGINT)


class ProcessState(IntEnum):
    """Supervisor's own states."""

    STOPPED = 0
    STARTING = 10
    RUNNING = 20
    BACKOFF = 30
    STOPPING = 40
    EXITED = 100
    FATAL = 200
    UNKNOWN = 1000


PHASES = {
    ProcessState.STOPPED: Phase.STOPPED,
    ProcessState.STARTING: Phase.STARTING,
    ProcessState.RUNNING: Phase.RUNNING,
    ProcessState.BACKOFF: Phase.STARTING,
    ProcessState.STOPPING: Phase.STOPPING,
    ProcessState.EXITED: Phase.EXITED,
    ProcessState.FATAL: Phase.FAILED,
    ProcessState.UNKNOWN: Phase.FAILED,
}
ENDED = (Phase.STOPPED, Phase.EXITED)


class RpcClient(Protocol):
    """Calls a method of supervisord; raises Fault and BackendUnavailableError."""

    async def call(self, method: str, *arguments: Any) -> Any:
        """Return the answer."""


@dataclass(frozen=True)
class LiveProcess:
    """One running child of supervisord."""

    pid: int
    life_id: str


def full_name(program: str) -> str:
    """Return `group:name`; a program alone is its own group."""
    return program if ":" in program else f"{program}:{program}"


def observation(info: Mapping[str, Any]) -> Observation:
    """Read one process info struct."""
    phase = PHASES[ProcessState(info["state"])]
    if info["pid"]:
        started_at = datetime.fromtimestamp(info["start"], UTC)
        return Observation(phase, f"{info['pid']}@{info['start']}", started_at)
    return Observation(phase, exit_code=info["exitstatus"] if phase in ENDED else None)


def pid_of(life_id: str | None) -> int | None:
    """Return the pid in one of our life ids; None for anything else."""
    word = (life_id or "").partition("@")[0]
    return int(word) if word.isdecimal() else None


def config_faults(instance: Instance, config: Mapping[str, Any], grace_s: float) -> list[str]:
    """Say which settings of a program break the promises of a stop.

    Supervisor 4.3 does not tell `stopasgroup` and `autorestart`; a version that does is checked.
    """
    where = f"program {instance.program!r} of instance {instance.instance_id!r}"
    faults = []
    if not config["killasgroup"]:
        faults.append(f"{where}: killasgroup must be true, or a kill leaves workers running")
    if config["stopwaitsecs"] < grace_s:
        faults.append(
            f"{where}: stopwaitsecs is {config['stopwaitsecs']}, must be at least {grace_s:g}, "
            "or running requests are cut before the grace is over"
        )
    if config["stopsignal"] not in GRACEFUL_SIGNALS:
        faults.append(f"{where}: stopsignal must be TERM, other signals end no request in order")
    if config.get("stopasgroup", False):
        faults.append(f"{where}: stopasgroup must be false, or workers end before their requests")
    if config.get("autorestart", False):
        faults.append(f"{where}: autorestart must be false, restarting is decided by the manager")
    return faults


def missing_fault(instance: Instance) -> str:
    """Say that supervisord lacks a program."""
    return (
        f"program {instance.program!r} of instance {instance.instance_id!r} is unknown to "
        "supervisord; add it, or correct `program` in the instances file"
    )


class SupervisorBackend:
    """Acts on engines through the XML-RPC interface of one supervisord.

    `local` says that supervisord runs on this machine, so that process groups can be looked at and
    killed; elsewhere only supervisord's own kill after stopwaitsecs reaches the workers.
    """

    def __init__(
        self,
        client: RpcClient,
        instances: Instances,
        grace_s: float,
        *,
        local: bool,
        pace: Pace | None = None,
    ) -> None:
        self._client = client
        self._instances = instances
        self._grace_s = grace_s
        self._local = local
        self._pace = pace or Pace()

    async def verify(self) -> None:
        """Compare the configuration of every program with what a stop needs."""
        configs = await self._configs()
        faults: list[str] = []
        missing: list[str] = []
        for instance in self._instances.values():
            config = configs.get(full_name(instance.program))
            if config is None:
                missing.append(missing_fault(instance))
            else:
                faults += config_faults(instance, config, self._grace_s)
        if faults or missing:
            kind = SettingsError if faults else ProgramMissingError
            raise kind("supervisord cannot be used as it is:\n  " + "\n  ".join(faults + missing))

    async def observe_all(self) -> Mapping[str, Observation]:
        """Return what supervisord says of every instance."""
        infos = await self._client.call("supervisor.getAllProcessInfo")
        seen = {f"{info['group']}:{info['name']}": observation(info) for info in infos}
        missing = Observation(Phase.FAILED)
        return {
            instance_id: seen.get(full_name(instance.program), missing)
            for instance_id, instance in self._instances.items()
        }

    async def stop(self, instance: Instance, life_id: str | None, grace_s: float) -> Ending:
        """End the named life, then whatever is left of its process group."""
        found = await self._observe(instance)
        target = life_id or found.life_id
        ending = Ending.ABSENT
        if found.running and found.life_id == target:
            ending = await self._end(instance, found, grace_s)
        elif not found.running and found.phase is Phase.STARTING:
            # Supervisor waits to try again (BACKOFF); nobody asked for another life.
            await self._ask_to_stop(instance)
        await self._end_orphans(instance, target)
        return ending

    async def start(self, instance: Instance) -> None:
        """Start the program unless it runs; waits for a stop that is under way."""
        await self._wait_while_stopping(instance)
        try:
            await self._client.call("supervisor.startProcess", instance.program, RETURN_AT_ONCE)
        except Fault as fault:
            if fault.faultCode != ALREADY_STARTED:
                raise StartFailedError(fault.faultString) from fault

    async def roll_back(self, instance: Instance) -> None:
        """Run the command that is configured for it; supervisord knows no versions."""
        await run_way_back(instance)

    async def _end(self, instance: Instance, found: Observation, grace_s: float) -> Ending:
        live = LiveProcess(pid_of(found.life_id) or 0, found.life_id or "")
        if self._local:
            await self._wait_until_executed(live.pid)
        owns_group = self._local and await self._leads_its_group(live.pid)
        stop_wait_s = await self._stop_wait_s(instance)
        begun = self._pace.now()
        if found.phase is not Phase.STOPPING:
            await self._ask_to_stop(instance)
        grace_s = grace_s if owns_group else stop_wait_s
        last = await self._wait_until_gone(instance, live, begun + grace_s)
        if last is None:
            log.warning("grace_is_over", extra={"instance_id": instance.instance_id})
            if owns_group:
                kill_group(live.pid)
            last = await self._wait_until_gone(instance, live, self._pace.now() + KILL_WAIT_S)
            if last is None:
                raise StopFailedError(f"{instance.program} still runs after SIGKILL")
            return Ending.KILLED
        # Supervisor escalates by itself; it reports any signal as -1 and does not say which.
        waited_s = self._pace.now() - begun
        signalled = last.exit_code == -1
        escalated = waited_s >= stop_wait_s or found.phase is Phase.STOPPING
        return Ending.KILLED if signalled and escalated else Ending.LEFT

    async def _wait_until_executed(self, pid: int) -> None:
        """Wait while a child is still supervisord's own fork, whose handlers swallow a SIGTERM."""
        daemon = read_command(await self._client.call("supervisor.getPID"))
        deadline = self._pace.now() + EXECUTE_WAIT_S
        while daemon and read_command(pid) == daemon and self._pace.now() < deadline:
            await self._pace.sleep(POLL_S)

    async def _wait_until_gone(
        self, instance: Instance, live: LiveProcess, deadline: float
    ) -> Observation | None:
        """Return the first observation without that life; None when the deadline passes."""
        while True:
            found = await self._observe(instance)
            if found.life_id != live.life_id:
                return found
            if self._pace.now() >= deadline:
                return None
            await self._pace.sleep(POLL_S)

    async def _wait_while_stopping(self, instance: Instance) -> None:
        deadline = self._pace.now() + await self._stop_wait_s(instance) + KILL_WAIT_S
        while (await self._observe(instance)).phase is Phase.STOPPING:
            if self._pace.now() >= deadline:
                raise StopFailedError(f"{instance.program} still runs after SIGKILL")
            await self._pace.sleep(POLL_S)

    async def _end_orphans(self, instance: Instance, life_id: str | None) -> None:
        """Kill what a dead server left in its process group, after a moment to leave by itself."""
        group = pid_of(life_id)
        if not self._local or group is None:
            return
        session = await self._session()
        deadline = self._pace.now() + ORPHAN_WAIT_S
        while session is not None and (left := orphans(group, session)):
            if self._pace.now() >= deadline:
                log.warning(
                    "orphans_killed",
                    extra={"instance_id": instance.instance_id, "processes": len(left)},
                )
                kill_group(group)
                await self._wait_until_empty(instance, group)
                return
            await self._pace.sleep(POLL_S)

    async def _wait_until_empty(self, instance: Instance, group: int) -> None:
        deadline = self._pace.now() + KILL_WAIT_S
        while living_members(group):
            if self._pace.now() >= deadline:
                raise StopFailedError(f"workers of {instance.program} still run after SIGKILL")
            await self._pace.sleep(POLL_S)

    async def _ask_to_stop(self, instance: Instance) -> None:
        try:
            await self._client.call("supervisor.stopProcess", instance.program, RETURN_AT_ONCE)
        except Fault as fault:
            if fault.faultCode != NOT_RUNNING:
                raise BackendUnavailableError(f"stopProcess: {fault.faultString}") from fault

    async def _observe(self, instance: Instance) -> Observation:
        try:
            info = await self._client.call("supervisor.getProcessInfo", instance.program)
        except Fault as fault:
            raise BackendUnavailableError(f"{instance.program}: {fault.faultString}") from fault
        return observation(info)

    async def _configs(self) -> Mapping[str, Mapping[str, Any]]:
        listed = await self._client.call("supervisor.getAllConfigInfo")
        return {f"{config['group']}:{config['name']}": config for config in listed}

    async def _stop_wait_s(self, instance: Instance) -> float:
        config = (await self._configs()).get(full_name(instance.program))
        return float(config["stopwaitsecs"]) if config else 0.0

    async def _leads_its_group(self, pid: int) -> bool:
        """Return True when that pid is supervisord's own child here and leads its group."""
        stat = read_stat(pid)
        daemon = await self._client.call("supervisor.getPID")
        return stat is not None and stat.group == pid and stat.parent == daemon

    async def _session(self) -> int | None:
        stat = read_stat(await self._client.call("supervisor.getPID"))
        return None if stat is None else stat.session
