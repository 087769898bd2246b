"""A second agent beside a stack, with rescue on, and clients that read to the letter."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from tests.acceptance.fleet import until

from gatemesh_mesh.plan import StackPlan, service_environment
from gatemesh_mesh.ports import LOOPBACK, choose_ports
from gatemesh_mesh.stack import answers_ok

CHAT = "/v1/chat/completions"
SLOWLY = {"X-Sim-Fault": "slow"}
"""Has a simulated engine write two tokens a second."""
ANSWER_DEADLINE_S = 120.0
STOP_DEADLINE_S = 30.0
LOG_TAIL = 6000


@dataclass(frozen=True)
class Rescuing:
    """An agent that rescues."""

    url: str
    admin_url: str
    log: Path

    def metric(self, start: str) -> float:
        """Return the sum of the figures whose lines begin like this."""
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.lines(start))

    def lines(self, start: str) -> list[str]:
        """Return the lines of the metrics that begin like this."""
        page = f"{self.admin_url}/metrics"
        with urllib.request.urlopen(page, timeout=5) as answer:  # noqa: S310 - our own agent
            lines = answer.read().decode().splitlines()
        return [line for line in lines if line.startswith(start)]

    def told(self) -> str:
        """Return what it says of itself, for the one who must find out why."""
        names = ("stall_checks", "moved", "continuations", "attributed", "in_flight")
        lines = [line for name in names for line in self.lines(f"gatemesh_agent_{name}")]
        return "\n".join([*lines, self.log.read_text()[-LOG_TAIL:]])

    @property
    def continued(self) -> float:
        """Parts of streams that another instance began to write."""
        return self.metric("gatemesh_agent_continuations_total{")


@dataclass
class Told:
    """What a client read of one stream."""

    text: str = ""
    code: str | None = None
    """Of the error event that ended it, or the name of what tore the connection."""
    finish: str | None = None
    ended: bool = False
    ids: set[str] = field(default_factory=set)

    @property
    def is_whole(self) -> bool:
        """True for a stream that ended as one of a single engine."""
        return self.ended and self.code is None and self.finish is not None and len(self.ids) == 1


@contextmanager
def running_agent(plan: StackPlan, **settings: str) -> Iterator[Rescuing]:
    """Run an agent with rescue on beside those of the stack; it is asked to end afterwards."""
    ports = choose_ports(("rescuing", "rescuing_admin"), random.Random())
    own = {
        "GATEMESH_AGENT_ID": "agent-rescuing",
        "GATEMESH_AGENT_GUARD": "rescue",
        "GATEMESH_AGENT_PORT": str(ports["rescuing"]),
        "GATEMESH_AGENT_ADMIN_PORT": str(ports["rescuing_admin"]),
        "GATEMESH_AGENT_SPOOL_DIR": str(plan.folder.spool / "agent-rescuing"),
        "GATEMESH_AGENT_STOP_GRACE_S": "2",
    }
    environment = {**os.environ, **service_environment(plan)["agent"], **own, **settings}
    log = plan.folder.logs / "agent-rescuing.log"
    url, admin_url = (f"http://{LOOPBACK}:{port}" for port in ports.values())
    agent = Rescuing(url, admin_url, log)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "gatemesh_agent"],
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        yield agent
    finally:
        process.terminate()
        assert has_ended(process), f"it does not end in order: {log.read_text()[-LOG_TAIL:]}"


def has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Wait for a process; one that does not end in time writes down what it does, and is killed."""
    try:
        return process.wait(STOP_DEADLINE_S) == 0
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        process.wait(STOP_DEADLINE_S)
        return False


@asynccontextmanager
async def rescuing(plan: StackPlan, **settings: str) -> AsyncIterator[Rescuing]:
    """Run such an agent, ready and with the lives of the pool's instances known to it."""
    with running_agent(plan, **settings) as agent:
        await until(lambda: answers_ok(f"{agent.admin_url}/readyz"), "the rescuing agent is ready")
        await until(
            lambda: agent.metric("gatemesh_agent_routing_version") > 0, "it knows the pool's lives"
        )
        yield agent


async def tell(
    base_url: str,
    prompts: Sequence[str],
    *,
    begun: asyncio.Event | None = None,
    headers: dict[str, str] | None = None,
    **fields: Any,
) -> list[Told]:
    """Ask for all of these at once, as streams; `begun` is set once each has brought text."""
    waiting = set(range(len(prompts)))
    limit = aiohttp.ClientTimeout(total=ANSWER_DEADLINE_S)

    def has_text(number: int) -> None:
        waiting.discard(number)
        if not waiting and begun is not None:
            begun.set()

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        timeout=limit, headers=headers, connector=connector
    ) as session:

        async def client(number: int, prompt: str) -> Told:
            told = Told()
            messages = [{"role": "user", "content": prompt}]
            asked = {"model": "sim", "messages": messages, "temperature": 0, "stream": True}
            try:
                async with session.post(base_url + CHAT, json={**asked, **fields}) as response:
                    await follow(told, response, lambda: has_text(number))
            except (aiohttp.ClientError, TimeoutError) as error:
                told.code = type(error).__name__
            has_text(number)
            return told

        return await asyncio.gather(*(client(*pair) for pair in enumerate(prompts)))


async def follow(
    told: Told, response: aiohttp.ClientResponse, has_text: Callable[[], object]
) -> None:
    """Read a stream to its end; say with each line that there is text."""
    async for line in response.content:
        note(told, line)
        if told.text:
            has_text()


def note(told: Told, line: bytes) -> None:
    """Take in one line of a stream, or a whole error."""
    if line.startswith(b"data: [DONE]"):
        told.ended = True
    elif line.startswith((b"data: ", b"{")):
        event = orjson.loads(line.removeprefix(b"data: "))
        if "error" in event:
            told.code = str(event["error"].get("code"))
            return
        told.ids.add(event["id"])
        for choice in event["choices"]:
            told.text += choice["delta"].get("content") or ""
            told.finish = choice["finish_reason"] or told.finish


async def tell_whole(base_url: str, prompts: Sequence[str], **fields: Any) -> list[Told]:
    """Ask for all of these at once, not streamed."""
    limit = aiohttp.ClientTimeout(total=ANSWER_DEADLINE_S)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=limit, connector=connector) as session:

        async def client(prompt: str) -> Told:
            messages = [{"role": "user", "content": prompt}]
            asked = {"model": "sim", "messages": messages, "temperature": 0, **fields}
            async with session.post(base_url + CHAT, json=asked) as response:
                return told_of(await response.json())

        return await asyncio.gather(*map(client, prompts))


def told_of(answer: dict[str, Any]) -> Told:
    """Return what a client reads of a whole answer."""
    if "error" in answer:
        return Told(code=str(answer["error"].get("code")))
    [choice] = answer["choices"]
    text, finish = choice["message"]["content"], choice["finish_reason"]
    return Told(text, finish=finish, ended=True, ids={answer["id"]})


async def uncut(plan: StackPlan, prompts: Sequence[str], **fields: Any) -> list[str]:
    """Return what a healthy engine answers."""
    answers = await tell(plan.engines[0].base_url, prompts, **fields)
    assert all(one.is_whole for one in answers)
    return [one.text for one in answers]
