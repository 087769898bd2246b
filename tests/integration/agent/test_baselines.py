"""Agents measure by the manager's baselines, with and without a broker."""

import asyncio
import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.integration.agent.parts import engine, saying, serving, settings_for

from gatemesh_agent.baselines import load_baselines
from gatemesh_agent.service import baselines_path, build_agent
from gatemesh_common.broker import declare_topology
from gatemesh_common.messages import (
    Baseline,
    BaselineEntry,
    CheckLevel,
    Decoding,
    Reason,
    TelemetryWindow,
)
from gatemesh_common.publisher import Publisher

pytestmark = pytest.mark.integration

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WORDS = (
    "The tide turns twice a day because the moon pulls at the sea and the earth spins " * 2
).split()
ASK = {
    "model": "m",
    "messages": [{"role": "user", "content": "Why does the tide turn?"}],
    "temperature": 0,
}


def baseline(version: int, pool: str = "default") -> Baseline:
    """Return what is normal for greedy answers: half a nat a token."""
    entries = tuple(
        BaselineEntry(
            metric=metric,
            decoding=Decoding.GREEDY,
            script="latin",
            count=500,
            median=0.5,
            mad=0.1,
        )
        for metric in ("nll_16", "nll_whole")
    )
    return Baseline(
        timestamp=NOON, pool=pool, model_version="unknown", version=version, entries=entries
    )


def answer(logprob: float) -> bytes:
    """Return an answer whose every token is equally surprising."""
    content = [
        {"token": f"{word} ", "logprob": logprob, "top_logprobs": [{"logprob": logprob}]}
        for word in WORDS
    ]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": " ".join(WORDS) + "."},
        "logprobs": {"content": content},
        "finish_reason": "stop",
    }
    return json.dumps({"choices": [choice]}).encode()


async def repeat(publisher: Publisher, told: tuple[Baseline, ...], path: Path) -> None:
    """Publish baselines as the manager does, until the agent has one on disk."""
    async with asyncio.timeout(30):
        while not load_baselines(path):
            for each in told:
                await publisher.publish(each)
            await asyncio.sleep(0.05)


async def tell(amqp_url: str, folder: Path, *told: Baseline) -> None:
    """Have a running agent hear baselines until it has them on disk."""
    settings = settings_for(folder, {}, GATEMESH_AMQP_URL=amqp_url)
    async with build_agent(settings) as agent, Publisher(amqp_url, "test") as publisher:
        await declare_topology(await publisher.channel())
        following = asyncio.create_task(agent.baseline_feed.run(amqp_url))

        try:
            await repeat(publisher, told, baselines_path(settings))
        finally:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following


async def test_a_baseline_is_kept_for_a_start_without_a_broker(
    vhost_url: str, tmp_path: Path
) -> None:
    """An agent that restarts while the broker is away still knows what is normal."""
    await tell(vhost_url, tmp_path, baseline(9, pool="other"), baseline(4))
    async with (
        engine(saying(answer(-2.5))) as bad,
        serving(settings_for(tmp_path, {"engine-0": bad})) as setup,
    ):
        assert (await setup.post("/v1/chat/completions", ASK)).status == 200
        spikes = [each for each in await setup.verdicts() if each.check_level is CheckLevel.L2]
    assert [spike.reason for spike in spikes] == [Reason.PERPLEXITY_SPIKE]
    assert spikes[0].details["median"] == 0.5


async def test_figures_of_usual_answers_go_into_telemetry(tmp_path: Path) -> None:
    """While the pool has no baseline yet, too."""
    async with (
        engine(saying(answer(-0.6))) as good,
        serving(settings_for(tmp_path, {"engine-0": good})) as setup,
    ):
        await setup.post("/v1/chat/completions", ASK)
        setup.agent.roll_telemetry()
        [window] = setup.spooled(TelemetryWindow)
    assert {sketch.script for sketch in window.sketches} == {"latin"}
    whole = next(sketch for sketch in window.sketches if sketch.metric == "nll_whole")
    assert whole.bins == {30: 1}
    assert window.gates[CheckLevel.L2].skipped == {"warming": 1}
