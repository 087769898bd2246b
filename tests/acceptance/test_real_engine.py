"""The loop on a real vLLM: clean traffic is untouched, and an engine gone bad is repaired."""

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest
from tests.acceptance.fleet import Fleet, keep_asking, now, until

from gatemesh_mesh import history
from gatemesh_mesh.demo import load_prompts
from gatemesh_mesh.demo_engines import real_engines
from gatemesh_mesh.drills import Drill, start_drill
from gatemesh_mesh.foreground import running_stack
from gatemesh_mesh.history import History
from gatemesh_mesh.options import StackOptions
from gatemesh_mesh.postgres import plain_url
from gatemesh_mesh.progress import SilentProgress
from gatemesh_mesh.real_engine import MODEL_NAME, is_installed, layout_of
from gatemesh_mesh.stack import REPOSITORY
from gatemesh_mesh.state import StateFolder, state_folder
from gatemesh_mesh.suite import FAULTS_VARIABLE, REAL_ENGINE_VARIABLE

pytestmark = [pytest.mark.acceptance, pytest.mark.real_engine, pytest.mark.timeout(1800)]

CLEAN_REQUESTS = 300 if os.environ.get(FAULTS_VARIABLE) else 108
"""The long form comes with `./mesh test --faults`; the short one asks each prompt three times."""
CLIENTS = 2
"""Eight at once gave another answer to 1 request of 300: a tie that fell the other way."""
REAL_LOOP_DEADLINE_S = 400.0
"""A whole loop; on a CPU without AVX-512 the probes alone take a minute."""
VARYING = re.compile(rb'"id":"[^"]*"|"created":\d+')
SHAPES: list[dict[str, object]] = [
    {"max_tokens": 6},
    {"max_tokens": 8, "stream": True},
    {"max_tokens": 6, "stream": True, "stream_options": {"include_usage": True}},
    {"max_tokens": 6, "stop": [".", "。"]},
]


@pytest.fixture(scope="module")
def running_real_fleet() -> Iterator[Fleet]:
    """Run two real engines behind the agent."""
    installed = state_folder(os.environ, REPOSITORY)
    if not is_installed(installed):
        pytest.skip(os.environ.get(REAL_ENGINE_VARIABLE, "the real engine is not installed"))
    folder = StateFolder(Path(tempfile.mkdtemp(prefix="gatemesh-real-")))
    # In bfloat16 an engine answers otherwise once its prefix is cached, or beside a probe.
    make_engines = real_engines(layout_of(installed), "float32")
    options = StackOptions(engine_count=2)
    try:
        with (
            running_stack(folder, options, SilentProgress(), make_engines) as (stack, plan),
            closing(Fleet(stack, plan)) as fleet,
        ):
            yield fleet
    finally:
        shutil.rmtree(folder.root, ignore_errors=True)


@pytest.fixture
async def real_fleet(running_real_fleet: Fleet) -> Fleet:
    """Hand over real engines that are all in rotation."""
    await running_real_fleet.settled(REAL_LOOP_DEADLINE_S)
    return running_real_fleet


def body_of(prompt: str, turn: int) -> dict[str, object]:
    """Return a greedy chat request."""
    messages = [{"role": "user", "content": prompt}]
    return {
        "model": MODEL_NAME,
        "messages": messages,
        "temperature": 0,
        **SHAPES[turn % len(SHAPES)],
    }


async def answer(session: aiohttp.ClientSession, base_url: str, body: dict[str, object]) -> bytes:
    """Return status and body without what differs each time."""
    async with session.post(f"{base_url}/v1/chat/completions", json=body) as response:
        return b"%d %s" % (response.status, VARYING.sub(b"", await response.read()))


async def compare(fleet: Fleet, prompts: list[str], turns: range) -> list[int]:
    """Ask the engines directly, then through the agent; return the turns that differ."""
    engines = fleet.plan.engines
    direct: dict[int, bytes] = {}
    different = []
    async with aiohttp.ClientSession() as session:

        async def ask_directly(number: int) -> None:
            for turn in range(number, len(prompts), len(engines)):
                body = body_of(prompts[turn], turn)
                direct[turn] = await answer(session, engines[number].base_url, body)

        await asyncio.gather(*map(ask_directly, range(len(engines))))

        async def client(own: range) -> None:
            for turn in own:
                body = body_of(prompts[turn % len(prompts)], turn)
                through = await answer(session, fleet.plan.agent_url, body)
                if through != direct[turn % len(prompts)] or not through.startswith(b"200 "):
                    different.append(turn)

        await asyncio.gather(*(client(turns[first::CLIENTS]) for first in range(CLIENTS)))
    return different


async def test_clean_requests_change_nothing(real_fleet: Fleet) -> None:
    """Greedy requests: the engine's own bytes, no failure and no action."""
    since = now()
    prompts = load_prompts()
    assert len(prompts) % len(SHAPES) == 0, "a prompt must come back in the same shape"
    assert await compare(real_fleet, prompts, range(CLEAN_REQUESTS)) == []
    assert real_fleet.commands(since) == []
    assert real_fleet.failures(since) == []


async def test_an_engine_gone_bad_is_isolated_and_repaired(real_fleet: Fleet) -> None:
    """NaN from inside the running engine: out, confirmed, restarted, proven clean, back."""
    since, stopped, statuses = now(), asyncio.Event(), list[int]()
    prompts = load_prompts()

    async def ask(turn: int) -> None:
        status, _, _ = await real_fleet.ask(
            prompts[turn % len(prompts)], model=MODEL_NAME, max_tokens=16, stream=turn % 2 == 0
        )
        statuses.append(status)

    asking = asyncio.create_task(keep_asking(ask, stopped))
    try:
        drill = Drill("nan", pgid=real_fleet.pid_of("engine-1"))
        start_drill(real_fleet.plan.folder.root / "drills" / "engine-1.json", drill)
        await until(
            lambda: real_fleet.reached("engine-1", "restarting", since) and real_fleet.is_settled(),
            "engine-1 repaired",
            REAL_LOOP_DEADLINE_S,
        )
    finally:
        stopped.set()
        await asking
    assert real_fleet.commands(since) == ["eject", "restart"]
    assert set(statuses) == {200}
    read = History(plain_url(real_fleet.plan.addresses.database_url)).moment
    first_proof = read(history.FIRST_FAILURE, "engine-1", since)
    out = read(history.CONFIRMED_OUT, "engine-1", since)
    restarted = read(history.REACHED, "engine-1", since, "restarting")
    # How long it took is for the demo to measure; here only the order counts.
    assert first_proof is not None
    assert out is not None
    assert restarted is not None
    assert first_proof < out < restarted
