"""The composition root, as far as nothing needs to run."""

import asyncio

import pytest

from gatemesh_agent import __main__ as program
from gatemesh_agent.service import DRAIN_S
from gatemesh_agent.settings import AgentSettings
from gatemesh_common.running import EXIT_SETTINGS


def test_wrong_settings_end_it_with_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And one clean message."""
    monkeypatch.setenv("GATEMESH_AGENT_PORT", "many")
    assert program.main() == EXIT_SETTINGS
    assert "GATEMESH_AGENT_PORT" in capsys.readouterr().err


async def test_a_task_that_fails_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traffic never waits for the mesh, and a fault nobody thought of must not end its helpers."""
    monkeypatch.setattr(program, "AGAIN_S", 0.0)
    runs = 0
    enough = asyncio.Event()

    async def fail() -> None:
        nonlocal runs
        runs += 1
        if runs == 3:
            enough.set()
        raise KeyError

    task = asyncio.create_task(program.keep_running(fail))
    await asyncio.wait_for(enough.wait(), 5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("grace_s", [0.0, 30.0])
def test_running_requests_and_events_have_their_time_before_it_is_ended(grace_s: float) -> None:
    """Whoever kills it sooner cuts streams."""
    settings = AgentSettings.model_validate(
        {"instances": {"a": "http://127.0.0.1:1"}, "stop_grace_s": grace_s}
    )
    assert program.longest_stop_s(settings) > grace_s + DRAIN_S
