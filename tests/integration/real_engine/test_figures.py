"""The production plugin inside the real engine: its figures against those of the API."""

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]

VOCABULARY = 49_152
PROMPTS = ("Write one sentence about the sea.", "请写一句关于春天的话。", "List three fruits.")


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_figures_lie_within_the_bounds_that_the_api_gives(
    engine: Any, prompt: str, temperature: int
) -> None:
    """Exact top-1 probability equals the API's, and the entropy lies between its bounds."""
    probe_id = f"bounds-{temperature}-{len(prompt)}"
    answer = ask(engine, prompt, probe_id, temperature=temperature)
    entries = answer.entries()
    lines = await_lines(engine.options.plugin_file, probe_id, expected=-(-len(entries) // 8))
    assert [line["step"] for line in lines] == list(range(0, len(entries), 8))
    for line in lines:
        low, high, top1 = bounds(entries[line["step"]])
        assert line["top1_p"] == pytest.approx(top1, abs=1e-3)
        assert low - 1e-3 <= line["entropy_nats"] <= high + 1e-3
        assert (line["nan"], line["pos_inf"], line["vocab"]) == (0, 0, VOCABULARY)


@pytest.mark.parametrize("temperature", [0, 1])
def test_chosen_tokens_are_those_of_the_api(engine: Any, temperature: int) -> None:
    """Their log probability and rank; rank 0 at temperature 0."""
    probe_id = f"choices-{temperature}"
    entries = ask(engine, PROMPTS[0], probe_id, temperature=temperature).entries()
    await_lines(engine.options.plugin_file, probe_id, expected=len(entries) // 8)
    lines = read_lines(engine.options.plugin_file)
    choices = [line for line in lines if line["probe_id"] == probe_id and "rank" in line]
    assert [line["step"] for line in choices] == list(range(0, len(entries) - 1, 8))
    for line in choices:
        assert line["chosen_logprob"] == pytest.approx(entries[line["step"]]["logprob"], abs=1e-2)
        assert temperature or line["rank"] == 0


def test_nothing_is_written_without_a_probe_id(engine: Any) -> None:
    """Requests that nobody watches cost nothing and leave nothing."""
    engine.chat(PROMPTS[0])
    ask(engine, PROMPTS[0], "after-the-silent-one")
    await_lines(engine.options.plugin_file, "after-the-silent-one", expected=1)
    assert all(line["probe_id"] for line in read_lines(engine.options.plugin_file))


def test_several_requests_at_once_keep_their_lines_apart(engine: Any) -> None:
    """n answers of one request share a probe id; each of them is measured at its own steps."""
    ask(engine, PROMPTS[2], "three-of-one", temperature=1, n=3, max_tokens=9)
    lines = await_lines(engine.options.plugin_file, "three-of-one", expected=4)
    assert {line["step"] for line in lines} <= {0, 8}


def ask(engine: Any, prompt: str, probe_id: str, **more: Any) -> Any:
    """One watched request with logprobs."""
    extra = {"vllm_xargs": {"probe_id": probe_id}, "logprobs": True, "top_logprobs": 20}
    return engine.chat(prompt, **extra, **more)


def bounds(entry: dict[str, Any]) -> tuple[float, float, float]:
    """Lowest and highest entropy in nats, and the top-1 probability, that 20 logprobs allow."""
    first, *others = [float(top["logprob"]) for top in entry["top_logprobs"]]
    # The first is the sampled token; below the rest it is none of the likeliest.
    known = others if first < min(others) else [first, *others]
    rest = max(1e-12, 1.0 - sum(math.exp(value) for value in known))
    part = -sum(math.exp(value) * value for value in known)
    low = part - rest * min(known)
    high = part + rest * math.log((VOCABULARY - len(known)) / rest)
    return low, high, math.exp(max(known))


def await_lines(path: Path, probe_id: str, *, expected: int) -> list[dict[str, Any]]:
    """The lines of one probe, as soon as that many are there."""
    deadline = time.monotonic() + 10
    while True:
        found = read_lines(path)
        lines = [line for line in found if line["probe_id"] == probe_id and "vocab" in line]
        if len(lines) >= expected or time.monotonic() > deadline:
            assert len(lines) >= expected
            return lines
        time.sleep(0.05)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole lines of the plugin's file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
