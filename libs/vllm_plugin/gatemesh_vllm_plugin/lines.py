"""What is told about one step: JSON lines, one of its figures and one of its choice."""

import json
import math

from gatemesh_vllm_plugin.figures import Choice, Figures
from gatemesh_vllm_plugin.watched import StepName


def figures_line(step: StepName, figures: Figures, vocab_size: int, at: float) -> bytes:
    """Return one line: the figures of one step; null where a figure is no number."""
    return _line(
        {
            "probe_id": step.probe_id,
            "step": step.step,
            "entropy_nats": _number(figures.entropy_nats),
            "top1_p": _number(figures.top1_p),
            "variance": _number(figures.variance),
            "nan": figures.nan_count,
            "pos_inf": figures.pos_inf_count,
            "vocab": vocab_size,
            "at": at,
        }
    )


def choice_line(step: StepName, choice: Choice) -> bytes:
    """Return one line: the token that a measured step took."""
    return _line(
        {
            "probe_id": step.probe_id,
            "step": step.step,
            "chosen_logprob": _number(choice.chosen_logprob),
            "rank": choice.rank,
        }
    )


def _line(body: dict[str, object]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def _number(value: float) -> float | None:
    # More digits than bf16 logits hold.
    return round(value, 7) if math.isfinite(value) else None
