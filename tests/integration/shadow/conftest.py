"""Simulated engines in this process, a shadow as a process, and a broker between them."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aio_pika.abc import AbstractQueue
from aiohttp import test_utils

from gatemesh_common.broker import VERDICTS, declare_topology
from gatemesh_common.messages import (
    Decoding,
    InstanceState,
    RoutedInstance,
    RoutingTable,
    ShadowSample,
    Verdict,
)
from gatemesh_common.publisher import Publisher
from gatemesh_engine_sim.application import build_application
from gatemesh_engine_sim.lifecycle import build_service
from gatemesh_engine_sim.settings import SimSettings
from gatemesh_mesh.ports import choose_ports

DEADLINE_S = 60.0
CHAT = "/v1/chat/completions"


@dataclass
class Engines:
    """Simulated engines by name, and what was asked of each."""

    urls: dict[str, str] = field(default_factory=dict)
    asked: dict[str, list[str]] = field(default_factory=dict)


@pytest.fixture
async def engines() -> AsyncIterator[Engines]:
    """Three engines; a test publishes which of them are in the pool."""
    found = Engines()
    async with AsyncExitStack() as stack:
        for name in ("engine-0", "engine-1", "engine-2"):
            application = build_application(build_service(SimSettings(model="sim")))
            paths = found.asked.setdefault(name, [])

            async def note(request: Any, _response: Any, paths: list[str] = paths) -> None:
                paths.append(request.path)

            application.on_response_prepare.append(note)
            server = test_utils.TestServer(application)
            await server.start_server()
            stack.push_async_callback(server.close)
            found.urls[name] = str(server.make_url("")).rstrip("/")
        yield found


@dataclass
class World:
    """The broker as the mesh sees it, and what the shadow says there."""

    publisher: Publisher
    verdicts: AbstractQueue
    engines: Engines
    version: int = 0
    table: RoutingTable | None = None

    async def repeat(self) -> None:
        """Publish the table again and again, as the manager does."""
        while True:
            if self.table is not None:
                await self.publisher.publish(self.table)
            await asyncio.sleep(0.2)

    async def route(self, *names: str, states: dict[str, InstanceState] | None = None) -> None:
        """Publish a routing table with these engines."""
        self.version += 1
        states = states or {}
        instances = tuple(
            RoutedInstance(
                instance_id=name,
                base_url=self.engines.urls[name],
                state=states.get(name, InstanceState.HEALTHY),
                incarnation=1,
                model_version="sim-1",
            )
            for name in names
        )
        self.table = RoutingTable(
            timestamp=now(), pool="default", version=self.version, instances=instances
        )
        await self.publisher.publish(self.table)

    async def ask(
        self, name: str, question: str, fault: str | None = None, **more: Any
    ) -> ShadowSample:
        """Ask an engine as a client does, and make the sample that an agent would."""
        request = {
            "model": "sim",
            "messages": [{"role": "user", "content": question}],
            "max_tokens": 40,
            "temperature": 0,
            **more,
        }
        asked = {**request, "logprobs": True, "top_logprobs": 1, "return_token_ids": True}
        headers = {"X-Sim-Fault": fault} if fault else {}
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.engines.urls[name] + CHAT, json=asked, headers=headers) as response,
        ):
            [choice] = (await response.json())["choices"]
        return ShadowSample(
            timestamp=now(),
            agent_id="agent-0",
            instance_id=name,
            incarnation=1,
            request_id=f"r-{name}-{abs(hash((question, fault)))}",
            path=CHAT,
            request=request,
            text=choice["message"]["content"],
            finish_reason=choice["finish_reason"],
            token_ids=tuple(choice["token_ids"]),
            logprobs=tuple(one["logprob"] for one in choice["logprobs"]["content"]),
            decoding=Decoding.GREEDY if not request["temperature"] else Decoding.SAMPLED,
            prompt_fingerprint=f"fp-{question}",
            cause=more.pop("cause", "random"),
        )

    async def send(self, sample: ShadowSample, *, age_s: float = 0.0) -> None:
        """Publish a sample, as old as wanted."""
        aged = sample.model_copy(update={"timestamp": now() - timedelta(seconds=age_s)})
        await self.publisher.publish(aged)

    async def verdict(self) -> Verdict:
        """The next verdict; fails when there is none in time."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                message = await self.verdicts.get(timeout=DEADLINE_S, fail=False)
                if message is not None:
                    break
                await asyncio.sleep(0.02)
        await message.ack()
        return Verdict.model_validate_json(message.body)


def now() -> datetime:
    """The present time."""
    return datetime.now(UTC)


@pytest.fixture
async def world(vhost_url: str, engines: Engines) -> AsyncIterator[World]:
    """A broker with its topology, and engines."""
    async with Publisher(vhost_url, "test") as publisher:
        channel = await publisher.channel()
        await declare_topology(channel)
        world = World(publisher, await channel.get_queue(VERDICTS.name), engines)
        repeating = asyncio.create_task(world.repeat())
        yield world
        repeating.cancel()
        with suppress(asyncio.CancelledError):
            await repeating


@dataclass
class ShadowProcess:
    """A running shadow and its admin port."""

    process: subprocess.Popen[bytes]
    admin_url: str

    async def page(self, path: str) -> tuple[int, str]:
        """One page of the admin port."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(self.admin_url + path) as response,
        ):
            return response.status, await response.text()

    async def until_page(self, path: str, condition: Callable[[int, str], bool]) -> str:
        """Return a page as soon as it says what is awaited."""
        async with asyncio.timeout(DEADLINE_S):
            while not condition(*(found := await self._page_or_nothing(path))):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return found[1]

    async def _page_or_nothing(self, path: str) -> tuple[int, str]:
        """A page; nothing while nobody listens yet."""
        try:
            return await self.page(path)
        except aiohttp.ClientError:
            assert self.process.poll() is None, "the shadow ended"
            return 0, ""

    async def ready(self) -> None:
        """Return when it is ready, which takes a routing table."""
        await self.until_page("/readyz", lambda status, _: status == 200)

    def stop(self) -> int:
        """SIGTERM; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


Start = Callable[..., ShadowProcess]


@pytest.fixture
def start_shadow(vhost_url: str, tmp_path: Path) -> Iterator[Start]:
    """Start shadows with settings of the test; all are killed at the end."""
    running: list[ShadowProcess] = []

    def start(**settings: str) -> ShadowProcess:
        port = choose_ports(["admin"], random.Random())["admin"]
        own = {
            "GATEMESH_AMQP_URL": vhost_url,
            "GATEMESH_SHADOW_ADMIN_PORT": str(port),
            "GATEMESH_SHADOW_STATE_DIR": str(tmp_path / "state"),
            "GATEMESH_SHADOW_EMBEDDING": "off",
            "GATEMESH_SHADOW_VERIFIER": "off",
            "GATEMESH_SHADOW_SECOND_ANSWER_SHARE": "0",
            "GATEMESH_SHADOW_PER_INSTANCE_PER_S": "200",
            "GATEMESH_SHADOW_CALIBRATE": "false",
        }
        named = {f"GATEMESH_SHADOW_{name.upper()}": value for name, value in settings.items()}
        kept = {name: one for name, one in os.environ.items() if not name.startswith("GATEMESH_")}
        process = subprocess.Popen(
            [sys.executable, "-m", "gatemesh_shadow"], env=kept | own | named
        )
        running.append(ShadowProcess(process, f"http://127.0.0.1:{port}"))
        return running[-1]

    yield start
    for shadow in running:
        shadow.process.kill()
        shadow.process.wait()
