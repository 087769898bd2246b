"""The executor's repair of a real engine in developer mode."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.integration.real_engine.conftest import RunningEngine, free_port, running_engine

from gatemesh_common.clock import utc_now
from gatemesh_common.messages import ReadmitInstance, RepairInstance, StepName
from gatemesh_executor.backends.fake import FakeBackend
from gatemesh_executor.balancers.fake import FakeRotation
from gatemesh_executor.health import HttpHealth
from gatemesh_executor.instances import Instance
from gatemesh_executor.jobs import Job, Tools
from gatemesh_executor.playbooks import run_playbook
from gatemesh_executor.repairing import HttpRepair
from gatemesh_executor.weights.checksums import Checksums
from gatemesh_mesh.real_engine import EngineLayout, EngineOptions

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]

FRANCE = "What is the capital of France?"


class Told:
    """Keeps the steps that were told."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def note(self, step: StepName, duration_s: float) -> None:
        """Keep a step."""
        self.steps.append(step)


@pytest.fixture
def engine(
    layout: EngineLayout, core: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunningEngine]:
    """Give a real engine whose developer mode is on."""
    monkeypatch.setenv("VLLM_SERVER_DEV_MODE", "1")
    options = EngineOptions(port=free_port(), cpu_core=core)
    with running_engine(layout, options, tmp_path) as started:
        yield started


async def carry_out(tools: Tools, instance: Instance, kind: Any) -> tuple[list[str], list[str]]:
    """Carry out one order about the running life; return its steps and its notes."""
    life_id = (await tools.backend.observe_all())[instance.instance_id].life_id
    now = utc_now()
    command = kind(
        timestamp=now,
        instance_id=instance.instance_id,
        incarnation=1,
        fence=1,
        life_id=life_id,
        expires_at=now + timedelta(minutes=2),
    )
    told, job = Told(), Job(command, instance)
    await run_playbook(tools, job, told, utc_now)
    return told.steps, job.notes


async def test_zeroed_weights_come_back_from_their_files(
    engine: RunningEngine, tmp_path: Path
) -> None:
    """Damage in memory is named, reloaded, and its traces in the prefix cache are dropped."""
    url = f"http://127.0.0.1:{engine.options.port}"
    instance = Instance(instance_id="e", base_url=url, program="e", model_version="m")
    backend = FakeBackend({"e": instance}, utc_now)
    await backend.start(instance)
    async with HttpHealth() as health, HttpRepair() as repair:
        tools = Tools(backend, FakeRotation(), health, repair=repair, checksums=Checksums(tmp_path))
        await carry_out(tools, instance, ReadmitInstance)
        assert "Paris" in engine.chat(FRANCE).body.decode()
        engine.post("/weight_checker", {"action": "reset"})
        assert "Paris" not in engine.chat(FRANCE).body.decode()
        steps, notes = await carry_out(tools, instance, RepairInstance)
    assert steps == ["checked", "reloaded", "cache_reset"]
    assert any("differed from the proven ones: " in note for note in notes), notes
    assert "Paris" in engine.chat(FRANCE).body.decode()
