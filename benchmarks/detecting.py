"""Two real engines, one of them damaged, and everything that the gates say about its answers.

The stack is that of `./mesh up`; after the clean phase its manager and executor are stopped, and
this program publishes the routing tables, so that the damaged engine stays in rotation.
"""

import asyncio
import itertools
import json
import os
import random
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import aio_pika
import aiohttp

from gatemesh_common.clock import utc_now
from gatemesh_common.messages import (
    ALERTS,
    InstanceState,
    Outcome,
    ProbeTicket,
    RoutedInstance,
    RoutingTable,
    Verdict,
)
from gatemesh_common.publisher import Publisher
from gatemesh_mesh.demo_engines import real_engine
from gatemesh_mesh.drills import Drill, end_drill, start_drill
from gatemesh_mesh.plan import Engine, StackPlan
from gatemesh_mesh.real_engine import MODEL_NAME, EngineLayout
from gatemesh_mesh.stack import MakeEngines, Stack, answers_ok
from gatemesh_mesh.state import StateFolder
from gatemesh_mesh.waiting import wait_until

SICK = "engine-1"
CLIENTS = 6
HEALTH_DEADLINE_S = 180.0
POLICY = "[defaults.baseline]\nsettle_s = 5\n[defaults.probes]\nenabled = false\n"
LEARNT_AFTER_S = 30.0
"""Until what was heard has settled, is published, and the shadow has calibrated itself."""
QUIET_S = 6.0
LONGEST_QUIET_S = 60.0
LIST = """a lighthouse, the tides, bread, bees, a refrigerator, photosynthesis, the Moon, honey,
a hash table, recursion, a library, a river in spring, the water cycle, good sleep, a market on a
Saturday, bicycle brakes, volcanoes, the printing press, chess, tea, winter birds, glaciers, paper,
a paper clip, weather and climate, a good breakfast, public speaking"""
SUBJECTS = [" ".join(subject.split()) for subject in LIST.split(",")]
FORMS = (
    "Explain {} in two sentences.",
    "Write a short paragraph about {}.",
    "Give me three facts about {}.",
    "What should a beginner know about {}?",
    "List four words that go with {} and say why.",
)


def prompts(rng: random.Random) -> Iterator[str]:
    """Yield varied prompts, none twice in a row."""
    every = [form.format(subject) for form in FORMS for subject in SUBJECTS]
    while True:
        rng.shuffle(every)
        yield from every


@dataclass
class Answered:
    """One request of a client and when its text came."""

    request_id: str
    instance: str = ""
    status: int = 0
    began: datetime = field(default_factory=utc_now)
    chars: list[tuple[datetime, int]] = field(default_factory=list)
    """Moments, and the characters that the client had by then."""

    def chars_at(self, moment: datetime) -> int:
        """Return what the client had got by a moment."""
        return max((count for at, count in self.chars if at <= moment), default=0)


def engines_with_own_models(layout: EngineLayout, models: Path) -> MakeEngines:
    """Return what makes two engines, each of which loads its model through a link of its own."""

    def make(folder: StateFolder, ports: Sequence[int]) -> list[Engine]:
        models.mkdir(parents=True, exist_ok=True)
        made = []
        for number, port in enumerate(ports):
            name = f"engine-{number}"
            link_model(models / name, layout.model)
            engine = real_engine(folder, layout, name, port, number % (os.cpu_count() or 1))
            argv = [
                str(models / name) if part == str(layout.model) else part
                for part in engine.program.argv
            ]
            made.append(replace(engine, program=replace(engine.program, argv=tuple(argv))))
        return made

    return make


def link_model(link: Path, target: Path) -> None:
    """Let a link name another model, in one step."""
    draft = link.with_name(f"{link.name}.draft")
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    draft.replace(link)


class Verdicts:
    """Everything that is said on the alert exchange."""

    def __init__(self) -> None:
        self.heard: list[tuple[datetime, Verdict]] = []

    @asynccontextmanager
    async def listening(self, amqp_url: str) -> AsyncIterator[None]:
        """Hear while the block runs."""
        connection = await aio_pika.connect(amqp_url)
        async with connection:
            channel = await connection.channel()
            queue = await channel.declare_queue(exclusive=True, auto_delete=True)
            await queue.bind(ALERTS, "#")
            await queue.consume(self._take, no_ack=True)
            yield

    async def _take(self, message: aio_pika.abc.AbstractIncomingMessage) -> None:
        self.heard.append((utc_now(), Verdict.model_validate_json(message.body)))

    async def settle(self) -> None:
        """Wait until nothing has been said for a while: the shadow comes last."""
        deadline = time.monotonic() + LONGEST_QUIET_S
        seen = -1
        while seen != len(self.heard) and time.monotonic() < deadline:
            seen = len(self.heard)
            await asyncio.sleep(QUIET_S)

    def failed(self, request_ids: set[str]) -> dict[str, list[tuple[datetime, Verdict]]]:
        """Return the failures of some requests, by request."""
        found: dict[str, list[tuple[datetime, Verdict]]] = defaultdict(list)
        for at, verdict in self.heard:
            if verdict.outcome is Outcome.FAILED and verdict.request_id in request_ids:
                found[verdict.request_id].append((at, verdict))
        return found

    def of_ticket(self, ticket_id: str) -> Verdict | None:
        """Return what the probe suite said, if it has."""
        return next((one for _, one in self.heard if one.request_id == ticket_id), None)


class Lab:
    """The running stack, whose routing this program decides."""

    def __init__(
        self, stack: Stack, plan: StackPlan, verdicts: Verdicts, seed: int, tokens: int
    ) -> None:
        self._stack = stack
        self._plan = plan
        self._verdicts = verdicts
        self._version = 1_000_000
        self._life = 1_000
        self._numbers = itertools.count(1)
        self._tokens = tokens
        self._rng = random.Random(seed)
        self._prompts = prompts(self._rng)

    async def learn(self, answers: int) -> None:
        """Have clean traffic judged by the real manager, which publishes the baselines."""
        url = f"{self._plan.agent_url}/v1/models"
        await asyncio.to_thread(wait_until, lambda: answers_ok(url), HEALTH_DEADLINE_S)
        await self.traffic(answers, answers, instance="")
        await asyncio.sleep(LEARNT_AFTER_S)

    async def route(self, publisher: Publisher, ticket: ProbeTicket | None = None) -> None:
        """Publish a table in which both engines serve; the ticket is for the sick one."""
        self._version += 1
        table = RoutingTable(
            timestamp=utc_now(),
            pool=self._plan.engines[0].pool,
            version=self._version,
            instances=tuple(
                RoutedInstance(
                    instance_id=engine.instance_id,
                    base_url=engine.base_url,
                    state=InstanceState.HEALTHY,
                    incarnation=self._life if engine.instance_id == SICK else 1_000,
                    model_version=engine.model_version,
                    probe=ticket if engine.instance_id == SICK else None,
                )
                for engine in self._plan.engines
            ),
        )
        await publisher.publish(table)

    def next_life(self) -> None:
        """What was learnt about the sick engine's last life is forgotten."""
        self._life += 1

    @asynccontextmanager
    async def drill(self, fault: str, after_tokens: int) -> AsyncIterator[None]:
        """Have the running engine spoil its logits while the block runs."""
        path = self._plan.folder.root / "drills" / f"{SICK}.json"
        pid = next(one.pid for one in self._stack.supervision.statuses() if one.name == SICK)
        start_drill(path, Drill(fault, pgid=pid, after_tokens=after_tokens))
        try:
            yield
        finally:
            end_drill(path)

    def reload(self, link: Path, model: Path) -> bool:
        """Start the sick engine anew with another model; False when it does not come up."""
        link_model(link, model)
        self._stack.supervision.stop_program(SICK)
        self._stack.supervision.start_program(SICK)
        url = next(one.base_url for one in self._plan.engines if one.instance_id == SICK)
        return wait_until(lambda: answers_ok(f"{url}/health"), HEALTH_DEADLINE_S)

    async def traffic(self, wanted: int, most: int, *, instance: str = SICK) -> list[Answered]:
        """Send requests until so many were answered by one instance; return those."""
        done: list[Answered] = []
        sent = itertools.count()
        timeout = aiohttp.ClientTimeout(total=120)
        async with aiohttp.ClientSession(timeout=timeout) as session:

            async def client() -> None:
                while next(sent) < most and count(done, instance) < wanted:
                    done.append(await self._ask(session))

            await asyncio.gather(*(client() for _ in range(CLIENTS)))
        return [one for one in done if one.instance == instance]

    async def _ask(self, session: aiohttp.ClientSession) -> Answered:
        number = next(self._numbers)
        answered = Answered(f"detect-{number}")
        body: dict[str, Any] = {
            "model": MODEL_NAME,
            "messages": [{"role": "user", "content": next(self._prompts)}],
            "max_tokens": self._tokens,
            "temperature": number % 2,
            "stream": number % 4 < 2,
        }
        # Every answer is sampled, so that each kind shows what the shadow makes of it.
        headers = {"X-Request-Id": answered.request_id, "X-Gatemesh-Shadow": "always"}
        url = f"{self._plan.agent_url}/v1/chat/completions"
        async with session.post(url, json=body, headers=headers) as response:
            answered.instance = response.headers.get("X-Gatemesh-Instance", "")
            answered.status = response.status
            total = 0
            async for line in response.content:
                total += text_length(line)
                answered.chars.append((utc_now(), total))
        return answered

    async def probe(self, publisher: Publisher, deadline_s: float = 90.0) -> Verdict | None:
        """Have the suite run on the sick engine."""
        ticket = ProbeTicket(ticket_id=f"detect-suite-{self._version}", purpose="suspicion")
        await self.route(publisher, ticket)
        deadline = time.monotonic() + deadline_s
        while time.monotonic() < deadline:
            if found := self._verdicts.of_ticket(ticket.ticket_id):
                return found
            await asyncio.sleep(0.2)
        return None


def count(done: Sequence[Answered], instance: str) -> int:
    """Return how many answers came from an instance."""
    return sum(one.instance == instance for one in done)


CONTENT = re.compile(rb'"content":\s*("(?:[^"\\]|\\.)*")')


def text_length(line: bytes) -> int:
    """Return the characters of text in one line of an answer, streamed or whole."""
    return sum(len(json.loads(found)) for found in CONTENT.findall(line))


def make_damaged(layout: EngineLayout, kinds: Sequence[str], folder: Path) -> dict[str, Path]:
    """Write the damaged models that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    maker = Path(__file__).with_name("damage.py")
    for kind in kinds:
        if not (folder / kind).is_dir():
            argv = [str(layout.python), str(maker), "--model", str(layout.model)]
            subprocess.run(
                [*argv, "--kind", kind, "--target", str(folder / kind)],
                check=True,
                stdout=subprocess.DEVNULL,
            )
    return {kind: folder / kind for kind in kinds}
