"""The lines that the figures plugin would send."""

import json
import math
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatemesh_engine_sim.answering import plan_answer
from gatemesh_engine_sim.fault_plan import FaultSpec
from gatemesh_engine_sim.faults import fault_table
from gatemesh_engine_sim.intake import Asked
from gatemesh_engine_sim.library import Library
from gatemesh_engine_sim.plugin_lines import lines_of, probe_id_of, tell
from gatemesh_engine_sim.settings import SimSettings

NAMED = {"vllm_xargs": {"probe_id": "p"}}


@pytest.fixture
def told(library: Library, ask: Callable[..., Asked]) -> Callable[..., list[dict[str, Any]]]:
    """The lines of one answer under a fault."""

    def lines(fault: str | None = None, every: int = 1) -> list[dict[str, Any]]:
        spec = FaultSpec(fault=fault) if fault else None
        plan = plan_answer(ask(temperature=0, max_tokens=60), spec, fault_table(library), library)
        steps = [one.step for one in plan.choices[0]]
        return [json.loads(line) for line in lines_of("p", steps, every, 12.0)]

    return lines


def test_clean_steps_have_figures_and_choices(told: Callable[..., Any]) -> None:
    """The chosen token of a clean answer is the likeliest."""
    figures = [line for line in told() if "vocab" in line]
    assert all(0 <= line["entropy_nats"] < 6 and not line["nan"] for line in figures)
    assert {line["rank"] for line in told() if "rank" in line} == {0}
    assert [line["step"] for line in told(every=4) if "vocab" in line][:3] == [0, 4, 8]


def test_nan_has_counts_and_no_figures(told: Callable[..., Any]) -> None:
    """And no token was chosen from it."""
    lines = told("nan")
    assert {line["nan"] for line in lines} == {49_152}
    assert {line["entropy_nats"] for line in lines} == {None}


def test_flat_has_the_largest_entropy(told: Callable[..., Any]) -> None:
    """ln of the vocabulary."""
    assert told("flat")[0]["entropy_nats"] == pytest.approx(math.log(49_152), abs=1e-3)


@pytest.mark.parametrize(
    ("body", "expected"),
    [(NAMED, "p"), ({}, None), ({"vllm_xargs": {"probe_id": 7}}, None), ({"vllm_xargs": 1}, None)],
)
def test_only_named_requests_are_told(body: Any, expected: str | None) -> None:
    """As in the plugin."""
    assert probe_id_of(body) == expected


@pytest.mark.parametrize("kind", ["unix", "udp"])
def test_lines_reach_a_reader(
    kind: str, tmp_path: Path, library: Library, ask: Callable[..., Asked]
) -> None:
    """Over a socket or a port; without a reader nothing happens."""
    plan = plan_answer(ask(temperature=0), None, fault_table(library), library)
    family = socket.AF_UNIX if kind == "unix" else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as reader:
        reader.settimeout(5)
        reader.bind(str(tmp_path / "s") if kind == "unix" else ("127.0.0.1", 0))
        name = reader.getsockname()
        out = f"unix:{name}" if kind == "unix" else f"udp:127.0.0.1:{name[1]}"
        tell(NAMED, plan, SimSettings(plugin_out=out), 12.0)
        assert json.loads(reader.recv(1000))["probe_id"] == "p"
    tell(NAMED, plan, SimSettings(plugin_out=f"unix:{tmp_path}/nobody"), 12.0)
