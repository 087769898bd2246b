"""Measure the agent with gates L1 and L3 on beside a direct connection and an nginx pass-through.

    python benchmarks/agent.py [--seconds S] [--rounds N] [--clients N] [--tokens N] [--json OUT]

One engine stands behind all three: it replays an answer with 20 log probabilities per token where
they are asked, as the agent does. It takes no time to generate, so the loads without a pace show
what a path can carry at most; the paced load, at the speed of a real engine's streams, shows what a
client notices. The three paths take turns, round
after round, so that a busy moment of the machine meets all of them; medians are compared. Engine,
nginx, agent and client share the machine's cores: the client's own share is printed, and figures of
a machine with few cores say how the paths compare, not how fast they can be.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, cast

import uvloop

HOST = "127.0.0.1"
CHAT = "/v1/chat/completions"
PACE = re.compile(rb'"pace_ms":(\d+)')
SEA = (
    "The sea is a wide and restless place where cold currents carry life from pole to pole, and "
    "every coast keeps another story of storms, ships, salt, patience and slow return. "
    "Fishermen rise before the sun, mend what the night has torn, and read the weather in colours "
    "that visitors never learn to see."
)
WORDS = SEA.split()


@dataclass(frozen=True)
class Load:
    """One kind of traffic: what each client asks, and how many clients ask at once."""

    name: str
    stream: bool
    clients: int
    pace_ms: int = 0
    """Time between two tokens of a stream; 0 sends the whole answer at once."""


@dataclass
class Tally:
    """What one run gave."""

    latencies_s: list[float] = field(default_factory=list)
    first_bytes_s: list[float] = field(default_factory=list)
    chunks: int = 0
    wall_s: float = 0.0
    client_cpu_s: float = 0.0

    def figures(self) -> dict[str, float]:
        """Return the run's figures."""
        ordered, first = sorted(self.latencies_s), sorted(self.first_bytes_s)
        return {
            "requests_per_s": len(ordered) / self.wall_s,
            "chunks_per_s": self.chunks / self.wall_s,
            "p50_ms": ordered[len(ordered) // 2] * 1000,
            "p99_ms": ordered[int(len(ordered) * 0.99)] * 1000,
            "first_byte_p50_ms": first[len(first) // 2] * 1000,
            "first_byte_p99_ms": first[int(len(first) * 0.99)] * 1000,
            "client_cpu_share": self.client_cpu_s / self.wall_s,
        }


def entry(word: str, top: int) -> dict[str, Any]:
    """Return one token with its log probabilities, as vLLM writes it."""
    best = [(word, -0.31), *((f" other{rank}", -2.5 - rank / 3) for rank in range(top - 1))]
    listed = [{"token": text, "logprob": p, "bytes": list(text.encode())} for text, p in best]
    return {**listed[0], "top_logprobs": listed}


def answer(tokens: int, top: int, *, stream: bool) -> bytes:
    """Return a whole HTTP answer of the engine."""
    words = [" " + WORDS[place % len(WORDS)] for place in range(tokens)]
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "bench"}
    if not stream:
        logprobs = {"content": [entry(word, top) for word in words]} if top else None
        message = {"role": "assistant", "content": "".join(words)}
        choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "length"}
        body = compact({**head, "choices": [choice], "usage": {"completion_tokens": tokens}})
        return http_head("application/json", f"Content-Length: {len(body)}") + body
    events = [event(head, word, top, last=False) for word in words[:-1]]
    events += [event(head, words[-1], top, last=True), b"data: [DONE]\n\n"]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in events)
    return http_head("text/event-stream", "Transfer-Encoding: chunked") + chunks + b"0\r\n\r\n"


def event(head: dict[str, Any], word: str, top: int, *, last: bool) -> bytes:
    """Return one streamed event."""
    choice = {
        "index": 0,
        "delta": {"content": word},
        "logprobs": {"content": [entry(word, top)]} if top else None,
        "finish_reason": "length" if last else None,
        "token_ids": None,
    }
    return b"data: " + compact({**head, "choices": [choice]}) + b"\n\n"


def compact(value: object) -> bytes:
    """Write JSON as the engine does."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def http_head(kind: str, length: str) -> bytes:
    """Return status line and headers."""
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{length}\r\n\r\n".encode()


class EngineProtocol(asyncio.Protocol):
    """Answers each request on a connection with a prepared answer."""

    def __init__(self, answers: dict[tuple[bool, bool], bytes]) -> None:
        self._answers = answers
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # uvloop's transports have the methods but not the base class.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer once the body is whole; every client here sends a length."""
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if found and len(rest) >= length_in(head):
            self._buffer = b""
            asked = b'"top_logprobs"' in rest, b'"stream":true' in rest
            pace = PACE.search(rest)
            if pace is None:
                self._transport.write(self._answers[asked])
            else:
                pieces = self._answers[asked].split(b"data: ")
                # The head leaves with the first token, as it does in vLLM.
                pieces[:3] = [b"data: ".join(pieces[:3])]
                self._send(pieces, 0, int(pace[1]) / 1000)

    def _send(self, pieces: Sequence[bytes], place: int, pause_s: float) -> None:
        last = place == len(pieces) - 1
        self._transport.write(pieces[place] if last else pieces[place] + b"data: ")
        if not last:
            loop = asyncio.get_running_loop()
            loop.call_later(pause_s, self._send, pieces, place + 1, pause_s)


def length_in(head: bytes) -> int:
    """Return the content length that a head names."""
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0


def run_engine(port: int, tokens: int) -> None:
    """Serve as the engine until the process is ended."""
    answers = {
        (added, stream): answer(tokens, 20 if added else 0, stream=stream)
        for added in (False, True)
        for stream in (False, True)
    }

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: EngineProtocol(answers), HOST, port)
        await server.serve_forever()

    uvloop.run(serve())


class Caller:
    """One client: a connection that asks again and again."""

    def __init__(self, port: int, load: Load) -> None:
        self._port = port
        body = compact(
            {
                "model": "bench",
                "messages": [{"role": "user", "content": "Tell me about the sea."}],
                "temperature": 0,
                "max_tokens": 4096,
                **({"stream": True} if load.stream else {}),
                **({"pace_ms": load.pace_ms} if load.pace_ms else {}),
            }
        )
        self._request = (
            f"POST {CHAT} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode() + body

    async def run(self, until_s: float, tally: Tally) -> None:
        """Ask until the time is over."""
        reader, writer = await asyncio.open_connection(HOST, self._port, limit=2**20)
        while time.perf_counter() < until_s:
            begun = time.perf_counter()
            writer.write(self._request)
            head = await reader.readuntil(b"\r\n\r\n")
            tally.first_bytes_s.append(time.perf_counter() - begun)
            # Not `+= await`: others add to the sum meanwhile.
            chunks = await self._read(head, reader)
            tally.chunks += chunks
            tally.latencies_s.append(time.perf_counter() - begun)
        writer.close()

    async def _read(self, head: bytes, reader: asyncio.StreamReader) -> int:
        assert b" 200 " in head.split(b"\r\n", 1)[0], head
        if b"chunked" not in head.lower():
            await reader.readexactly(length_in(head))
            return 0
        chunks, tail = 0, b""
        while not tail.endswith(b"0\r\n\r\n"):
            data = await reader.read(2**16)
            chunks += data.count(b"data: ")
            tail = (tail + data)[-5:]
        return chunks


async def drive(port: int, load: Load, seconds: float) -> Tally:
    """Run one load against one path."""
    tally = Tally()
    cpu, begun = time.process_time(), time.perf_counter()
    callers = [Caller(port, load) for _ in range(load.clients)]
    await asyncio.gather(*(caller.run(begun + seconds, tally) for caller in callers))
    tally.wall_s = time.perf_counter() - begun
    tally.client_cpu_s = time.process_time() - cpu
    return tally


@contextmanager
def engine(port: int, tokens: int) -> Iterator[None]:
    """Run the engine in a process of its own."""
    process = multiprocessing.get_context("spawn").Process(target=run_engine, args=(port, tokens))
    process.start()
    try:
        wait_listening(port)
        yield
    finally:
        process.kill()
        process.join()


@contextmanager
def program(command: Sequence[str], port: int, environment: dict[str, str]) -> Iterator[None]:
    """Run a program until the block ends."""
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL
    )
    try:
        wait_listening(port)
        yield
    finally:
        process.terminate()
        process.wait()


def wait_listening(port: int, deadline_s: float = 60.0) -> None:
    """Return once a port accepts connections."""

    async def poll() -> None:
        async with asyncio.timeout(deadline_s):
            while True:
                try:
                    _, writer = await asyncio.open_connection(HOST, port)
                except OSError:
                    await asyncio.sleep(0.05)
                else:
                    writer.close()
                    return

    asyncio.run(poll())


def nginx_command(folder: Path, port: int, engine_port: int) -> list[str]:
    """Write a pass-through configuration for streams and return the command."""
    configuration = folder / "nginx.conf"
    configuration.write_text(
        f"""
daemon off; user root; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.err;
events {{ worker_connections 512; }}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  keepalive_requests 1000000;
  upstream engine {{ server {HOST}:{engine_port}; keepalive 128; keepalive_requests 1000000; }}
  server {{
    listen {HOST}:{port};
    location / {{
      proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""
    )
    binary = shutil.which("nginx")
    assert binary
    return [binary, "-c", str(configuration), "-p", str(folder)]


def agent_environment(folder: Path, port: int, admin_port: int, engine_port: int) -> dict[str, str]:
    """Return the settings of an agent with no broker, as it is when one is away."""
    return {
        "GATEMESH_AMQP_URL": f"amqp://none:none@{HOST}:1/",
        "GATEMESH_AGENT_PORT": str(port),
        "GATEMESH_AGENT_ADMIN_PORT": str(admin_port),
        "GATEMESH_AGENT_INSTANCES": f"engine-0=http://{HOST}:{engine_port}",
        "GATEMESH_AGENT_SPOOL_DIR": str(folder / "spool"),
        "GATEMESH_AGENT_FINGERPRINT_KEY": "benchmark-key-0123456789",
        "GATEMESH_LOG_LEVEL": "ERROR",
    }


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now."""
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def measure(paths: dict[str, int], loads: Sequence[Load], options: argparse.Namespace) -> Any:
    """Return the median figures by load and path; the paths take turns."""
    runs: dict[str, dict[str, list[dict[str, float]]]] = {}
    turns = product(loads, range(options.rounds + 1), paths.items())
    for load, number, (path, port) in turns:
        seconds = options.seconds if number else min(options.seconds, 1.0)
        tally = uvloop.run(drive(port, load, seconds))
        if number:
            # Round 0 only warms up.
            runs.setdefault(load.name, {}).setdefault(path, []).append(tally.figures())
    return {
        load: {path: medians(figures) for path, figures in by_path.items()}
        for load, by_path in runs.items()
    }


def medians(figures: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {name: statistics.median(one[name] for one in figures) for name in figures[0]}


def compare(results: dict[str, dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return each path's figures as ratios to direct, and its added latency."""
    ratios: dict[str, dict[str, float]] = {}
    for load, by_path in results.items():
        direct = by_path["direct"]
        for path, figures in by_path.items():
            if path != "direct":
                ratios[f"{load}/{path}"] = {
                    "requests_ratio": figures["requests_per_s"] / direct["requests_per_s"],
                    "added_p50_ms": figures["p50_ms"] - direct["p50_ms"],
                    "added_p99_ms": figures["p99_ms"] - direct["p99_ms"],
                    "added_first_byte_p50_ms": figures["first_byte_p50_ms"]
                    - direct["first_byte_p50_ms"],
                    "added_first_byte_p99_ms": figures["first_byte_p99_ms"]
                    - direct["first_byte_p99_ms"],
                    **chunk_ratio(figures, direct),
                }
    return ratios


def chunk_ratio(figures: dict[str, float], direct: dict[str, float]) -> dict[str, float]:
    """Return the ratio of streamed chunks, where there are any."""
    chunks = direct["chunks_per_s"]
    return {"chunks_ratio": figures["chunks_per_s"] / chunks} if chunks else {}


def show(report: dict[str, Any]) -> None:
    """Print the report as a table."""
    print(f"{report['machine']}; {report['tokens']} tokens per answer; {report['note']}")
    names = ("load", "path", "req/s", "chunks/s", "p50 ms", "p99 ms", "client CPU")
    print("{:<14}{:<8}{:>9}{:>10}{:>9}{:>9}{:>12}".format(*names))
    for load, by_path in report["results"].items():
        for path, one in by_path.items():
            print(
                f"{load:<14}{path:<8}{one['requests_per_s']:>9.0f}{one['chunks_per_s']:>10.0f}"
                f"{one['p50_ms']:>9.2f}{one['p99_ms']:>9.2f}{one['client_cpu_share']:>12.0%}"
            )
    for name, ratio in report["ratios"].items():
        print(
            f"{name:<22} requests x{ratio['requests_ratio']:.2f}, "
            f"added p50 {ratio['added_p50_ms']:.2f} ms, p99 {ratio['added_p99_ms']:.2f} ms, "
            f"to the first byte p50 {ratio['added_first_byte_p50_ms']:.2f} ms, "
            f"p99 {ratio['added_first_byte_p99_ms']:.2f} ms"
        )


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one run, s")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each path that count")
    parser.add_argument("--clients", type=int, default=16, help="clients of the busy loads")
    parser.add_argument("--tokens", type=int, default=64, help="tokens per answer")
    parser.add_argument("--pace-ms", type=int, default=10, help="between two paced tokens, ms")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print it; 0 unless something could not be started."""
    options = read_options(arguments)
    engine_port, nginx_port, agent_port, admin_port = free_ports(4)
    paths = {"direct": engine_port}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gatemesh-bench-")))
        stack.enter_context(engine(engine_port, options.tokens))
        if shutil.which("nginx"):
            command = nginx_command(folder, nginx_port, engine_port)
            stack.enter_context(program(command, nginx_port, {}))
            paths["nginx"] = nginx_port
        else:
            print("nginx is not installed and left out; apt-get install nginx-light brings it")
        environment = agent_environment(folder, agent_port, admin_port, engine_port)
        command = [sys.executable, "-m", "gatemesh_agent"]
        stack.enter_context(program(command, agent_port, environment))
        paths["agent"] = agent_port
        loads = (
            Load("whole x1", stream=False, clients=1),
            Load("stream x1", stream=True, clients=1),
            Load(f"whole x{options.clients}", stream=False, clients=options.clients),
            Load(f"stream x{options.clients}", stream=True, clients=options.clients),
            Load(
                f"paced x{options.clients}",
                stream=True,
                clients=options.clients,
                pace_ms=options.pace_ms,
            ),
        )
        results = measure(paths, loads, options)
    report = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}",
        "note": "client, engine and path under test share the cores",
        "tokens": options.tokens,
        "peak_client_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "results": results,
        "ratios": compare(results),
    }
    show(report)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
