"""Samples reach the shadow's queue, and nothing waits for them."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aio_pika
import aiohttp
import pytest
from tests.integration.agent.parts import Setup, chat, completion, serving, settings_for, until

from gatemesh_common.broker import SAMPLES, declare_topology
from gatemesh_common.messages import ShadowSample
from gatemesh_common.publisher import Publisher

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"


@pytest.fixture
async def samples(broker_url: str) -> AsyncIterator[aio_pika.abc.AbstractQueue]:
    """Return the shadow's queue, empty."""
    async with Publisher(broker_url, "test") as publisher:
        await declare_topology(await publisher.channel())
    connection = await aio_pika.connect(broker_url)
    async with connection:
        queue = await (await connection.channel()).get_queue(SAMPLES.name)
        await queue.purge()
        yield queue
        await queue.purge()


@asynccontextmanager
async def sending(settings: Any) -> AsyncIterator[Setup]:
    """Run an agent whose samples are sent."""
    async with serving(settings) as setup:
        task = asyncio.create_task(setup.agent.guarding.samples.run())
        try:
            yield setup
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def next_sample(queue: aio_pika.abc.AbstractQueue) -> ShadowSample:
    """Return the next sample of the queue."""
    async with asyncio.timeout(30):
        while True:
            message = await queue.get(no_ack=True, fail=False)
            if message is not None:
                return ShadowSample.model_validate_json(message.body)
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
async def test_a_wanted_sample_carries_tokens_and_figures(  # noqa: PLR0917
    tmp_path: Path,
    engines: dict[str, str],
    broker_url: str,
    samples: aio_pika.abc.AbstractQueue,
    path: str,
    stream: bool,  # noqa: FBT001
) -> None:
    """The wish is for the agent: the engine never sees its header."""
    body = (chat if path == CHAT else completion)(stream=stream)
    settings = settings_for(
        tmp_path, {"e": engines["engine-0"]}, shadow_share=0, GATEMESH_AMQP_URL=broker_url
    )
    async with sending(settings) as setup:
        await setup.post(path, body)
        await setup.post(path, body, **{"X-Gatemesh-Shadow": "always", "X-Request-Id": "R2"})
        sample = await next_sample(samples)
    assert (sample.cause, sample.request_id, sample.instance_id) == ("header", "R2", "e")
    assert (sample.request, sample.path) == (body, path)
    assert sample.token_ids is not None
    assert sample.logprobs is not None
    assert len(sample.token_ids) == len(sample.logprobs) > 3
    assert sample.text
    assert await samples.get(no_ack=True, fail=False) is None


async def test_an_answer_that_failed_softly_is_sampled(
    tmp_path: Path,
    engines: dict[str, str],
    broker_url: str,
    samples: aio_pika.abc.AbstractQueue,
) -> None:
    """Another gate is to confirm it."""
    address = engines["engine-0"]
    async with aiohttp.ClientSession() as session:
        await session.post(f"{address}/sim/fault", json={"fault": "control"})
    settings = settings_for(tmp_path, {"e": address}, shadow_share=0, GATEMESH_AMQP_URL=broker_url)
    async with sending(settings) as setup:
        await setup.post(CHAT, chat())
        assert (await next_sample(samples)).cause == "suspicion"


async def test_traffic_waits_for_no_broker(tmp_path: Path, engines: dict[str, str]) -> None:
    """Samples are dropped when there is none."""
    settings = settings_for(tmp_path, engines, shadow_share=1, shadow_per_s=10_000)
    async with sending(settings) as setup:
        begun_s = time.monotonic()
        for _ in range(20):
            assert (await setup.post(CHAT, chat())).status == 200
        took_s = time.monotonic() - begun_s
        await until(lambda: setup.agent.guarding.samples.waiting < 20)
    assert took_s < 10
