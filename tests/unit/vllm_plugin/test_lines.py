"""What a reader of the figures gets to see."""

import json
import math

import pytest

from gatemesh_vllm_plugin.figures import Choice, Figures
from gatemesh_vllm_plugin.lines import choice_line, figures_line
from gatemesh_vllm_plugin.watched import StepName

STEP = StepName("p", 8)


def test_a_line_names_its_step_and_figures() -> None:
    """What a reader joins on, and what it learns."""
    line = figures_line(STEP, Figures(1.5, 0.25, 0.5, 0, 1), 100, 12.0)
    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "probe_id": "p",
        "step": 8,
        "entropy_nats": 1.5,
        "top1_p": 0.25,
        "variance": 0.5,
        "nan": 0,
        "pos_inf": 1,
        "vocab": 100,
        "at": 12.0,
    }


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(value: float) -> None:
    """JSON knows no NaN."""
    body = json.loads(figures_line(STEP, Figures(value, value, value, 7), 100, 12.0))
    assert [body[name] for name in ("entropy_nats", "top1_p", "variance", "nan")] == [
        None,
        None,
        None,
        7,
    ]


def test_a_choice_has_a_line_of_its_own() -> None:
    """It is known a step later."""
    assert json.loads(choice_line(STEP, Choice(-2.5, 3))) == {
        "probe_id": "p",
        "step": 8,
        "chosen_logprob": -2.5,
        "rank": 3,
    }
