"""What the rescue benchmark stands on: engines and agents of its own, and a client that counts.

The agents are the real program without a broker; a stored routing table tells them where to send
requests. Engines are simulated; which of their requests are struck is known to the token.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from benchmarks.agent import HOST, agent_environment, free_ports, wait_listening

CHAT, COMPLETIONS = "chat", "completions"
PATHS = {CHAT: "/v1/chat/completions", COMPLETIONS: "/v1/completions"}
MODEL = "sim"
ROOM = 65_536
"""Longest prompt and answer of the engines, tokens."""
FAR_LESS = 0.001
"""Weight of instances that are to get a request only when another may not."""
ANSWER_DEADLINE_S = 600.0
QUICK_TO_DOUBT = {
    "GATEMESH_AGENT_STALL_S": "2",
    "GATEMESH_AGENT_STALL_FIRST_S": "4",
    "GATEMESH_AGENT_STALL_PROBE_S": "1",
    "GATEMESH_AGENT_RESCUE_STALL_S": "2",
    "GATEMESH_AGENT_FIRST_BYTE_S": "8",
}
"""So that a hung engine is known within seconds here; the defaults are 20, 60, 10, 10 and 300."""


@dataclass
class Read:
    """One answer as a client got it."""

    status: int = 0
    text: str = ""
    finish: str | None = None
    error: str | None = None
    """The error's type, or the exception of a torn connection."""
    ended: bool = False
    """A stream had its end mark, a whole answer its end."""
    events: int = 0
    silent_events: int = 0
    """Events of tokens without text."""
    ids: set[str] = field(default_factory=set)
    first_s: float = 0.0
    largest_gap_s: float = 0.0
    wall_s: float = 0.0
    usage: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Return True when nothing was missing or wrong in form."""
        return self.status == 200 and self.error is None and self.ended and bool(self.finish)


@dataclass
class Program:
    """A program that was started here."""

    name: str
    command: Sequence[str]
    port: int
    environment: Mapping[str, str] = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def pid(self) -> int:
        """Return the process, which runs."""
        assert self.process
        return self.process.pid

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        self.process = subprocess.Popen(
            self.command, env={**os.environ, **self.environment}, stdout=subprocess.DEVNULL
        )
        wait_listening(self.port)

    def is_running(self) -> bool:
        """Return True while it has not ended."""
        return self.process is not None and self.process.poll() is None

    def end(self, number: int = signal.SIGTERM) -> None:
        """Send a signal and wait for the end; one that was stopped is woken up first."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.send_signal(signal.SIGCONT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


@dataclass
class Rig:
    """Engines, and agents in front of all of them by name."""

    engines: list[Program]
    agents: dict[str, Program]
    admin_ports: dict[str, int]

    @property
    def victim(self) -> Program:
        """Return the engine that is to be damaged."""
        return self.engines[0]

    def url(self, agent: str | None, route: str, engine: int = -1) -> str:
        """Return where to ask: an agent, or an engine directly."""
        port = self.engines[engine].port if agent is None else self.agents[agent].port
        return f"http://{HOST}:{port}{PATHS[route]}"

    def order(self, fault: Mapping[str, Any] | None) -> None:
        """Damage the victim, or heal it; one that died is started again."""
        data = None if fault is None else json.dumps(fault).encode()
        method = "DELETE" if fault is None else "POST"
        try:
            call(self._fault_url(), data, method)
        except OSError:
            self.victim.end()
            self.victim.start()
            call(self._fault_url(), data, method)

    def struck(self) -> int:
        """Return how many requests the present or last fault has struck."""
        if not self.victim.is_running():
            return 1
        try:
            return int(json.loads(call(self._fault_url()))["struck"])
        except OSError:
            # It is dying of the fault.
            return 1

    def _fault_url(self) -> str:
        return f"http://{HOST}:{self.victim.port}/sim/fault"

    def answered_by_engines(self) -> int:
        """Return how many requests all engines have answered so far."""
        return int(
            sum(self._total(engine, "vllm:request_success_total{") for engine in self.engines)
        )

    def _total(self, engine: Program, start: str) -> float:
        page = call(f"http://{HOST}:{engine.port}/metrics").decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in page if line.startswith(start))

    def metrics(self, agent: str, *words: str) -> dict[str, float]:
        """Return the agent's own figures whose names hold one of these words, histograms' sums."""
        page = call(f"http://{HOST}:{self.admin_ports[agent]}/metrics").decode().splitlines()
        rows = (line.rsplit(" ", 1) for line in page if not line.startswith("#"))
        return {
            name: float(value)
            for name, value in rows
            if any(word in name for word in words)
            and "_bucket" not in name
            and "_created" not in name
        }


def call(url: str, data: bytes | None = None, method: str | None = None) -> bytes:
    """Return the body of one request."""
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        return bytes(answer.read())


def engine_program(name: str, port: int, more: Sequence[str]) -> Program:
    """Return a simulated engine."""
    command = (
        *(sys.executable, "-m", "gatemesh_engine_sim", "--name", name, "--port", str(port)),
        *("--model", MODEL, "--max-model-len", str(ROOM), "--max-num-seqs", "512", *more),
    )
    return Program(name, command, port)


def agent_program(
    folder: Path,
    name: str,
    engines: Sequence[Program],
    ports: tuple[int, int],
    more: Mapping[str, str],
) -> Program:
    """Return an agent with a stored routing table."""
    environment = agent_environment(folder / name, *ports, engines[0].port)
    environment |= {"GATEMESH_AGENT_ID": name, **more}
    return Program(name, (sys.executable, "-m", "gatemesh_agent"), ports[0], environment)


def store_routing(
    folder: Path, name: str, engines: Sequence[Program], weights: Sequence[float]
) -> None:
    """Leave the table that the agent finds at its start."""
    spool = folder / name / "spool"
    spool.mkdir(parents=True, exist_ok=True)
    instances = [
        {
            "instance_id": engine.name,
            "base_url": f"http://{HOST}:{engine.port}",
            "state": "healthy",
            "incarnation": 1,
            "weight": weight,
        }
        for engine, weight in zip(engines, weights, strict=True)
    ]
    table = {"pool": "default", "version": 1, "instances": instances}
    table["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    (spool / f"routing-{name}.json").write_text(json.dumps(table), encoding="utf-8")


@contextmanager
def running_rig(
    folder: Path,
    agents: Mapping[str, Mapping[str, str]],
    *,
    count: int = 3,
    victim_first: bool = True,
    engine_flags: Sequence[str] = (),
) -> Iterator[Rig]:
    """Run engines and agents until the block ends."""
    ports = iter(free_ports(count + 2 * len(agents)))
    engines = [engine_program(f"engine-{n}", next(ports), engine_flags) for n in range(count)]
    weights = [1.0, *[FAR_LESS if victim_first else 1.0] * (count - 1)]
    rig = Rig(engines, {}, {})
    with ExitStack() as stack:
        for engine in engines:
            stack.callback(engine.end)
            engine.start()
        for name, more in agents.items():
            pair = next(ports), next(ports)
            store_routing(folder, name, engines, weights)
            rig.agents[name] = agent_program(folder, name, engines, pair, more)
            rig.admin_ports[name] = pair[1]
            stack.callback(rig.agents[name].end)
            rig.agents[name].start()
        yield rig


def body_of(
    route: str, question: str, max_tokens: int, *, stream: bool, **more: Any
) -> dict[str, Any]:
    """Return a greedy request."""
    asked = {"messages": [{"role": "user", "content": question}]}
    prompt = asked if route == CHAT else {"prompt": question}
    fields = {"model": MODEL, "temperature": 0, "max_tokens": max_tokens, "stream": stream}
    return {**fields, **prompt, **more}


def word_of(number: int) -> str:
    """Return a word of letters for a number: gates read numbers in prompts."""
    places = (number // 400 % 20, number // 20 % 20, number % 20)
    return "the " + "".join(f"{CONSONANTS[place]}{'aeiou'[place % 5]}" for place in places)


CONSONANTS = "bcdfghjklmnprstvwxyz"


async def ask(
    session: aiohttp.ClientSession,
    url: str,
    body: Mapping[str, Any],
    begins: Callable[[], object] = lambda: None,
) -> Read:
    """Send one request and read all of its answer, whatever it is; say when a stream begins."""
    read, begun_s = Read(), time.perf_counter()
    try:
        async with session.post(url, json=body) as response:
            read.status = response.status
            if "event-stream" in response.headers.get("Content-Type", ""):
                await _read_stream(read, response, begun_s, begins)
            else:
                _read_whole(read, await response.read())
                read.ended = True
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        read.error = type(error).__name__
    read.wall_s = time.perf_counter() - begun_s
    read.first_s = read.first_s or read.wall_s
    return read


async def _read_stream(
    read: Read, response: aiohttp.ClientResponse, begun_s: float, begins: Callable[[], object]
) -> None:
    last_s = 0.0
    async for line in response.content:
        if not line.startswith(b"data: "):
            continue
        now_s = time.perf_counter()
        if not last_s:
            read.first_s = now_s - begun_s
            begins()
        elif now_s - last_s > read.largest_gap_s:
            read.largest_gap_s = now_s - last_s
        last_s = now_s
        data = line[6:].strip()
        if data == b"[DONE]":
            read.ended = True
        else:
            _note(read, json.loads(data))


def _read_whole(read: Read, raw: bytes) -> None:
    try:
        _note(read, json.loads(raw))
    except ValueError:
        read.error = "unreadable"


def _note(read: Read, value: Mapping[str, Any]) -> None:
    """Take an event, or a whole answer, into account."""
    if "error" in value:
        error = value["error"]
        read.error = f"{error.get('type')} {error.get('code')}"
        return
    read.events += 1
    read.ids.add(str(value.get("id")))
    read.usage = value.get("usage") or read.usage
    for choice in value.get("choices", ()):
        part = choice.get("delta") or choice.get("message") or choice
        text = part.get("content") or part.get("text") or ""
        read.text += text
        read.silent_events += not text and "role" not in part
        read.finish = choice.get("finish_reason") or read.finish


def new_session() -> aiohttp.ClientSession:
    """Return a session without limits of its own."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=ANSWER_DEADLINE_S),
        read_bufsize=2**20,
    )


async def ask_many(
    url: str, bodies: Sequence[Mapping[str, Any]], begun: asyncio.Event | None = None
) -> list[Read]:
    """Send requests at once and return their answers; `begun` is set once all have begun."""
    waiting = len(bodies)

    def begins() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting and begun is not None:
            begun.set()

    async with new_session() as session:
        return await asyncio.gather(*(ask(session, url, body, begins) for body in bodies))
