"""Figures from inside the engine reach the agent beside the answer, and never change it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.integration.agent.conftest import start_engine
from tests.integration.agent.parts import chat, engine, serving, settings_for

from gatemesh_agent.metrics import PLUGIN_SILENT
from gatemesh_common.messages import CheckLevel, Reason, TelemetryWindow

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"


@pytest.fixture
def socket_path(tmp_path: Path) -> Path:
    """Where figures are sent."""
    return tmp_path / "figures.sock"


@pytest.fixture
def telling(socket_path: Path) -> Iterator[str]:
    """An engine with the plugin; its address."""
    more = ("--plugin-out", f"unix:{socket_path}", "--plugin-every", "2")
    process, address = start_engine("engine-0", *more)
    yield address
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def plugin_settings(folder: Path, address: str, path: Path, **more: Any) -> Any:
    """An agent that listens to the plugin."""
    given = {"plugin_socket": str(path), "plugin_grace_s": 0.2, **more}
    return settings_for(folder, {"engine-0": address}, **given)


@pytest.mark.parametrize("top_logprobs", [0, 20], ids=["plugin-only", "both"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_clean_answers_pass_once(
    tmp_path: Path,
    telling: str,
    socket_path: Path,
    top_logprobs: int,
    stream: bool,  # noqa: FBT001
) -> None:
    """One L3 conclusion per answer, whichever way the figures come."""
    settings = plugin_settings(tmp_path, telling, socket_path, top_logprobs=top_logprobs)
    async with serving(settings) as setup:
        for _ in range(3):
            got = await setup.post(CHAT, chat(stream=stream))
            assert got.status == 200
        setup.agent.insight.exact.settle_all()
        setup.agent.roll_telemetry()
        windows = setup.spooled(TelemetryWindow)
        assert await setup.verdicts() == []
    counts = [window.gates[CheckLevel.L3] for window in windows]
    assert sum(each.passed for each in counts) == 3
    assert [each.skipped for each in counts if each.skipped] == []


async def test_nan_is_seen_through_the_plugin_alone(
    tmp_path: Path, telling: str, socket_path: Path
) -> None:
    """Hard proof, although no log probabilities were asked."""
    settings = plugin_settings(tmp_path, telling, socket_path, top_logprobs=0)
    async with serving(settings) as setup:
        bad: dict[str, Any] = {"vllm_xargs": {"sim_fault": "nan"}}
        await setup.post(CHAT, chat(stream=True, **bad))
        found = [each for each in await setup.verdicts() if each.check_level is CheckLevel.L3]
    assert [(each.reason, each.hard) for each in found] == [(Reason.NAN_LOGITS, True)]
    assert found[0].details["figures"] == "plugin"


async def test_the_vocabulary_is_learnt_from_the_engine(
    tmp_path: Path, telling: str, socket_path: Path
) -> None:
    """By a request that it refuses, off every client's path."""
    async with serving(settings_for(tmp_path, {"engine-0": telling})) as setup:
        await setup.post(CHAT, chat())
        await setup.agent.insight.vocabulary.settle()
        assert setup.agent.insight.vocabulary.size("sim") == 49_152


async def test_an_engine_without_the_plugin_is_told_apart(
    tmp_path: Path, engines: dict[str, str], socket_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the agent can know: it asked for figures and none came. Counted, and logged once."""
    settings = plugin_settings(tmp_path, engines["engine-0"], socket_path, top_logprobs=0)
    count = PLUGIN_SILENT.labels(instance_id="engine-0")
    before = count._value.get()
    async with serving(settings) as setup:
        for _ in range(2):
            await setup.post(CHAT, chat())
        setup.agent.insight.exact.settle_all()
        setup.agent.roll_telemetry()
        [window] = setup.spooled(TelemetryWindow)
    assert count._value.get() == before + 2
    assert [record.message for record in caplog.records].count("plugin_silent") == 1
    assert window.gates[CheckLevel.L3].skipped == {"no_figures": 2}
    assert window.gates[CheckLevel.L3].passed == 0


async def test_an_engine_that_knows_no_extra_arguments(tmp_path: Path, socket_path: Path) -> None:
    """It refuses once, is asked again without, and never again with them."""
    bodies: list[dict[str, Any]] = []

    async def strict(request: web.Request) -> web.Response:
        body = await request.json()
        if "logit_bias" in body:
            return web.json_response({"error": {"message": "no"}}, status=400)
        bodies.append(body)
        if "vllm_xargs" in body:
            error = {"message": "Unrecognized request argument supplied: vllm_xargs"}
            return web.json_response({"error": error}, status=400)
        message = {"role": "assistant", "content": "Fine."}
        return web.json_response(
            {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        )

    async with (
        engine(strict) as address,
        serving(plugin_settings(tmp_path, address, socket_path)) as setup,
    ):
        got = [await setup.post(CHAT, chat()) for _ in range(2)]
    assert [each.status for each in got] == [200, 200]
    assert ["vllm_xargs" in body for body in bodies] == [True, False, False]


async def test_a_clients_own_arguments_are_kept(tmp_path: Path, socket_path: Path) -> None:
    """Its other arguments reach the engine; its own probe id is not touched."""
    seen: list[Any] = []

    async def listening(request: web.Request) -> web.Response:
        body = await request.json()
        if "logit_bias" not in body:
            seen.append(body.get("vllm_xargs"))
        message = {"role": "assistant", "content": "Fine."}
        return web.json_response(
            {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        )

    async with (
        engine(listening) as address,
        serving(plugin_settings(tmp_path, address, socket_path)) as setup,
    ):
        await setup.post(CHAT, chat(vllm_xargs={"mine": [1, 2]}))
        await setup.post(CHAT, chat(vllm_xargs={"probe_id": "own"}))
    assert seen[0]["mine"] == [1, 2]
    assert len(seen[0]["probe_id"]) == 32
    assert seen[1] == {"probe_id": "own"}
