"""The gateways that the agent is measured beside: how each is got, set up and started."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.agent import HOST, agent_environment, nginx_command, wait_listening

CHAT = "/v1/chat/completions"
UNGUARDED = "/bench/chat/completions"
"""A path that the agent passes on unread."""
START_S = 120.0
STOP_S = 15.0
INSTALL_S = 900.0


class MissingError(Exception):
    """A gateway cannot be had here; the text says why."""


@dataclass(frozen=True)
class Place:
    """Where one gateway works."""

    folder: Path
    """For its files, gone afterwards."""
    state: Path
    """For what is installed, kept."""
    port: int
    spare_port: int
    engines: Sequence[int]


@dataclass(frozen=True)
class Launch:
    """How a gateway is started."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    path: str = CHAT


Maker = Callable[[Place], Launch]


@dataclass
class Running:
    """A gateway that serves."""

    name: str
    port: int
    path: str
    pid: int

    def cpu_s(self) -> float:
        """Return the CPU time that it has taken, its children included."""
        return sum(map(cpu_of, family(self.pid)))

    def memory_bytes(self) -> int:
        """Return the memory that it holds; pages shared by its processes count in parts."""
        return sum(map(memory_of, family(self.pid)))


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for each in found:
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            found += [int(child) for child in read_or_nothing(task).split()]
    return found


def read_or_nothing(path: Path) -> str:
    """Return a file of a process; nothing once that is gone."""
    try:
        return path.read_text()
    except OSError:
        return ""


def cpu_of(pid: int) -> float:
    """Return the CPU time of a process, its ended children included, in seconds."""
    fields = read_or_nothing(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def memory_of(pid: int) -> int:
    """Return the proportional share of a process in memory, else what it has resident."""
    rollup = read_or_nothing(Path(f"/proc/{pid}/smaps_rollup"))
    for line in rollup.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    pages = read_or_nothing(Path(f"/proc/{pid}/statm")).split()
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if pages else 0


@contextmanager
def started(name: str, launch: Launch, place: Place) -> Iterator[Running]:
    """Run a gateway until the block ends.

    Raises:
        MissingError: it did not begin to serve.
    """
    log = place.folder / f"{name.replace(' ', '-')}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(launch.command),
            env={**os.environ, **launch.environment},
            stdout=output,
            stderr=output,
            cwd=place.folder,
        )
    try:
        try:
            wait_listening(place.port, START_S)
        except TimeoutError as error:
            told = log.read_text(errors="replace")[-500:]
            raise MissingError(f"did not listen within {START_S:.0f} s: {told}") from error
        yield Running(name, place.port, launch.path, process.pid)
    finally:
        end(process)


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a gateway, by force if it does not go."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def nginx(place: Place) -> Launch:
    """Return an nginx that passes everything on."""
    needs_program("nginx", "nginx-light")
    config = nginx_command(place.folder, place.port, place.engines[0])
    file = place.folder / "nginx.conf"
    servers = " ".join(f"server {HOST}:{port};" for port in place.engines)
    one = f"server {HOST}:{place.engines[0]};"
    text = file.read_text().replace(one, servers).replace("connections 512", "connections 4096")
    file.write_text(text)
    return Launch(config)


HAPROXY = """
global
  maxconn 4096
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  option http-no-delay
frontend front
  bind {host}:{port}
  default_backend engines
backend engines
  balance roundrobin
  http-reuse always
{servers}
"""


def haproxy(place: Place) -> Launch:
    """Return an HAProxy that passes everything on, on one core."""
    needs_program("haproxy", "haproxy")
    servers = "\n".join(
        f"  server e{number} {HOST}:{port}" for number, port in enumerate(place.engines)
    )
    config = place.folder / "haproxy.cfg"
    config.write_text(HAPROXY.format(host=HOST, port=place.port, servers=servers))
    return Launch((program_path("haproxy"), "-f", str(config), "-db"))


def vllm_router(place: Place) -> Launch:
    """Return the Rust router of the vLLM project."""
    binary = from_registry(place.state, "vllm-router", "vllm-router")
    engines = [f"http://{HOST}:{port}" for port in place.engines]
    command = (
        *(binary, "--host", HOST, "--port", str(place.port), "--policy", "round_robin"),
        *("--prometheus-port", str(place.spare_port), "--log-level", "error"),
        *("--max-concurrent-requests", "4096", "--queue-size", "4096"),
        *("--worker-urls", *engines),
    )
    return Launch(command)


def litellm(place: Place) -> Launch:
    """Return LiteLLM's proxy with one worker."""
    binary = from_registry(place.state, "litellm", "litellm[proxy]")
    lines = ["model_list:"]
    for port in place.engines:
        parts = f"model: openai/bench, api_base: 'http://{HOST}:{port}/v1', api_key: none"
        lines.append(f"  - {{model_name: bench, litellm_params: {{{parts}}}}}")
    config = place.folder / "litellm.yaml"
    config.write_text("\n".join(lines) + "\n")
    command = (binary, "--config", str(config), "--host", HOST, "--port", str(place.port))
    quiet = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    return Launch((*command, "--num_workers", "1", "--telemetry", "False"), quiet)


def agent(place: Place, path: str = CHAT, **more: str) -> Launch:
    """Return our agent without a broker."""
    folder = place.folder / f"agent-{place.port}"
    environment = agent_environment(folder, place.port, place.spare_port, place.engines[0])
    instances = ",".join(
        f"engine-{number}=http://{HOST}:{port}" for number, port in enumerate(place.engines)
    )
    settings = {f"GATEMESH_AGENT_{name}": value for name, value in more.items()}
    own = {**environment, "GATEMESH_AGENT_INSTANCES": instances, **settings}
    return Launch((sys.executable, "-m", "gatemesh_agent"), own, path)


MAKERS: Mapping[str, Maker] = {
    "nginx": nginx,
    "haproxy": haproxy,
    "vllm-router": vllm_router,
    "litellm": litellm,
    "agent": agent,
    "agent-x2": lambda place: agent(place, WORKERS="2"),
    "agent-text": lambda place: agent(place, TOP_LOGPROBS="0"),
    "agent-off": lambda place: agent(place, UNGUARDED),
}
"""Gates on is the default: L1, L2 and L3 with 20 log probabilities of each token; `x2` has two
workers, `off` passes requests on unread."""


def program_path(name: str) -> str:
    """Return where a program is installed; empty when it is not."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or ""


def needs_program(name: str, package: str) -> None:
    """Have a program of the operating system, installing it where that is possible.

    Raises:
        MissingError: it is not there and cannot be installed.
    """
    if program_path(name):
        return
    if not program_path("apt-get"):
        raise MissingError(f"{name} is not installed, and there is no apt-get")
    run_or_miss(("apt-get", "install", "-y", "--no-install-recommends", package))


def from_registry(state: Path, name: str, requirement: str) -> str:
    """Return a program from the Python registry, in an environment of its own.

    Raises:
        MissingError: it cannot be installed.
    """
    folder = state / name
    binary = folder / "bin" / name
    if not binary.exists():
        run_or_miss((sys.executable, "-m", "venv", str(folder)))
        run_or_miss((str(folder / "bin" / "pip"), "install", "--quiet", requirement))
    return str(binary)


def run_or_miss(command: Sequence[str]) -> None:
    """Run an installation.

    Raises:
        MissingError: it failed, or took too long.
    """
    begun_s = time.monotonic()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingError(f"{command[0]} failed: {type(error).__name__}") from error
    if done.returncode:
        took_s = time.monotonic() - begun_s
        raise MissingError(f"{command[0]} failed after {took_s:.0f} s: {done.stderr[-300:]}")
