"""Both processors under the engine's second interface, which GPU engines use by default."""

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gatemesh_mesh.real_engine import EngineLayout

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]

PROGRAM = Path(__file__).with_name("second_interface_program.py")


@pytest.fixture(scope="module")
def found(layout: EngineLayout, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the two processors did, told by the engine's own Python."""
    folder = tmp_path_factory.mktemp("second-interface")
    argv = [str(layout.python), str(PROGRAM), str(folder)]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=200, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    told: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return told


@pytest.mark.parametrize(
    ("fault", "row"),
    [
        ("nan", [None] * 5),
        ("flat", [0.0] * 5),
        ("shift", [9.0, 5.0, 6.0, 7.0, 8.0]),
        ("stuck", [5.0, 29.0, 7.0, 8.0, 9.0]),
    ],
)
def test_faults_hit_their_row_only(found: dict[str, Any], fault: str, row: list[float]) -> None:
    """On real tensors; the row of another slot keeps its logits."""
    assert found["spoiled"][fault] == [[0.0, 1.0, 2.0, 3.0, 4.0], row]


def test_the_plugin_measures_before_the_drill(found: dict[str, Any]) -> None:
    """Installed processors run first: the figures are those of the clean logits."""
    weights = [math.exp(value) for value in range(5)]
    shares = [weight / sum(weights) for weight in weights]
    entropy = -sum(share * math.log(share) for share in shares)
    variance = sum(share * math.log(share) ** 2 for share in shares) - entropy**2
    figures = [line for line in found["figures"] if "vocab" in line]
    assert [line["step"] for line in figures] == [0, 1, 2, 3]
    for line in figures:
        assert line["entropy_nats"] == pytest.approx(entropy, abs=1e-4)
        assert line["variance"] == pytest.approx(variance, abs=1e-4)
        assert line["top1_p"] == pytest.approx(max(shares), abs=1e-4)
        assert line["vocab"] == 5


def test_the_tokens_of_each_step_are_ranked(found: dict[str, Any]) -> None:
    """Tokens 1, 2 and 3 were fed; the likeliest is 4."""
    choices = [line for line in found["figures"] if "rank" in line]
    assert [(line["step"], line["rank"]) for line in choices] == [(0, 3), (1, 2), (2, 1)]
