"""A real engine with NaN among its weights: the agent learns it from the plugin alone."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.agent.parts import chat, serving, settings_for, until
from tests.integration.real_engine.conftest import MODEL, RunningEngine, free_port, running_engine

from gatemesh_common.messages import CheckLevel, Reason
from gatemesh_mesh.real_engine import EngineLayout, EngineOptions
from gatemesh_mesh.stack import REPOSITORY

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]

VOCABULARY = 49_152


@pytest.fixture(scope="module")
def damaged(
    layout: EngineLayout, core: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningEngine]:
    """An engine that serves a model with one NaN, with its plugin's socket beside it."""
    folder = tmp_path_factory.mktemp("damaged")
    spoiled = EngineLayout(folder)
    spoiled.venv.symlink_to(layout.venv)
    spoiled.model.parent.mkdir()
    program = (str(layout.python), str(REPOSITORY / "benchmarks" / "damage.py"))
    flags = ("--model", str(layout.model), "--kind", "nan_element", "--target", str(spoiled.model))
    subprocess.run((*program, *flags), check=True, capture_output=True, timeout=120)
    options = EngineOptions(free_port(), core, plugin_socket=folder / "figures.sock")
    with running_engine(spoiled, options, folder) as started:
        yield started


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_nan_is_seen_without_log_probabilities(
    damaged: RunningEngine,
    tmp_path: Path,
    stream: bool,  # noqa: FBT001
) -> None:
    """Hard proof from inside the engine, where the answer itself says 200 and nothing else."""
    address = {"engine-0": f"http://127.0.0.1:{damaged.options.port}"}
    socket = str(damaged.options.plugin_socket)
    settings = settings_for(tmp_path, address, plugin_socket=socket, top_logprobs=0)
    async with serving(settings) as setup:
        got = await setup.post(
            "/v1/chat/completions", chat(model=MODEL, stream=stream, max_tokens=9, temperature=0)
        )
        await setup.agent.insight.vocabulary.settle()
        size = setup.agent.insight.vocabulary.size(MODEL)
        # The plugin flushes ten times a second; the answer waits for its lines after its end.
        await until(lambda: setup.agent.insight.exact.is_idle)
        found = [each for each in await setup.verdicts() if each.check_level is CheckLevel.L3]
    assert got.status == 200
    assert [(each.reason, each.hard) for each in found] == [(Reason.NAN_LOGITS, True)]
    assert found[0].details["figures"] == "plugin"
    assert size == VOCABULARY
