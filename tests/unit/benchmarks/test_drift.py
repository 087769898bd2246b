"""The simulation of drift charts draws what it says, and counts what trips."""

import json
import random
import statistics
from pathlib import Path
from typing import Any

import pytest
from benchmarks.drift import drawn, false_alarms, main, median_delay, recorded_scores

from gatemesh_agent.gates.drift import WATCHED


def line(prompt: str, logprob: float) -> dict[str, Any]:
    """Return a recorded greedy answer of equally surprising tokens."""
    entry = {"token": "word ", "logprob": logprob, "top_logprobs": [{"logprob": logprob}]}
    choice = {"logprobs": {"content": [entry] * 20}, "finish_reason": "stop"}
    request = {"messages": [{"role": "user", "content": prompt}], "temperature": 0}
    return {"request": request, "status": 200, "body": json.dumps({"choices": [choice]})}


def test_drawn_scores_are_normal_and_correlated() -> None:
    """With a shift, around it."""
    rng = random.Random(1)
    draw = drawn(0.5, 400)
    answers = [draw(rng) for _ in range(3_000)]
    columns = [[answer[metric].value for answer in answers] for metric in WATCHED[:2]]
    assert statistics.mean(columns[0]) == pytest.approx(0.5, abs=0.06)
    assert statistics.pstdev(columns[0]) == pytest.approx(1.0, abs=0.05)
    assert statistics.correlation(*columns) == pytest.approx(0.85, abs=0.03)
    assert answers[0][WATCHED[0]].slack == pytest.approx(0.125)


def test_a_leaning_life_trips_and_a_healthy_one_does_not() -> None:
    """In a small number of answers."""
    rng = random.Random(2)
    assert false_alarms(drawn(0.0, 2_000), 2_000, rng) <= 1
    assert false_alarms(drawn(2.0, 2_000), 2_000, rng) > 150
    assert median_delay(drawn(2.0, 2_000), rng, lives=21) <= 10


def test_recorded_answers_are_scored_by_the_other_half() -> None:
    """Figures far from what the others show have large scores."""
    lines = [line(f"prompt {n}", -0.5 - 0.01 * (n % 10)) for n in range(60)]
    scores = recorded_scores([*lines, line("odd", -2.0)])
    assert len(scores) == 61
    assert sum(max(abs(score.value) for score in each.values()) >= 3 for each in scores) == 1


def test_the_program_prints_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And writes them down."""
    monkeypatch.setattr("benchmarks.drift.median_delay", lambda draw, rng: 7)
    clean = tmp_path / "clean.jsonl"
    lines = [line(f"prompt {n}", -0.5 - 0.01 * (n % 10)) for n in range(60)]
    clean.write_text("\n".join(json.dumps(each) for each in lines))
    out = tmp_path / "out.json"
    assert main(["--answers", "200", "--clean", str(clean), "--json", str(out)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(out.read_text())
    assert json.loads(out.read_text())["recorded"] == 60
