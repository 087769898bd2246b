"""The gate benchmark follows the scoring rules and says what is wrong with its input."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from benchmarks import gates
from benchmarks.gate_cases import judge_case, score_cases
from benchmarks.gate_corpus import acted_after, judge_answer, learn, measure_variant

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "gates"


def case(expect: str, gate: str | None, text: str, **more: Any) -> dict[str, Any]:
    """Return one labelled answer."""
    return {
        "id": text[:8],
        "kind": "made",
        "request": {"messages": [{"role": "user", "content": "Tell me about owls."}]},
        "response": {"text": text, "finish_reason": "stop"},
        "expect": expect,
        "gate": gate,
        **more,
    }


def scored(*cases: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of some cases."""
    rng = random.Random(1)
    return score_cases([judge_case(fields, rng) for fields in cases])


def test_scoring() -> None:
    """A case is caught by its own gate or a cheaper one; any failing gate is a false alarm."""
    figures = scored(
        case("fail", "L1", "An owl.<|im_end|>"),
        case("fail", "L1", "An owl is a bird."),
        case("fail", "L4", "An owl.<|im_end|>"),
        case("fail", "L3", "An owl is a bird."),
        case("pass", None, "An owl is a bird."),
        case("pass", "L1", "An owl.<pad>"),
    )
    assert figures["l1"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5, "false_alarms": 0.5}
    assert figures["chain"] == {"recall": 0.5, "false_alarms": 0.5}
    # Without log probabilities L3 abstains: no miss of L3, but one of the chain.
    assert figures["gates"]["L3"] == {"cases": 1, "recall": 0.0, "false_alarms": 0.0}
    assert figures["gates"]["L4"]["recall"] == 1.0
    kind = figures["by_kind"]["made"]
    assert (kind["caught_share"], kind["false_alarm_share"]) == (0.5, 0.5)
    assert kind["wrong"] == ["An owl i", "An owl i", "An owl.<"]


def test_steps_arrive_with_their_text() -> None:
    """Log probabilities of a case reach L3."""
    null = {"token": "An", "logprob": None, "top": [["An", None]]}
    fields = case("fail", "L3", "An owl is a bird.")
    fields["response"]["logprobs"] = [null]
    assert scored(fields)["gates"]["L3"]["recall"] == 1.0


def test_onset() -> None:
    """Latency is counted from where the text goes bad."""
    figures = scored(case("fail", "L1", "Owls " + "!" * 200, onset=5))
    assert figures["onset_chars"]["fired"] == 1
    assert 28 < figures["onset_chars"]["median"] < 64


def test_own_cases_and_corpus(tmp_path: Path) -> None:
    """The whole run writes the agreed JSON; damage is caught and the clean model is not accused."""
    out = tmp_path / "out.json"
    cases = str(DATA / "own_cases.jsonl")
    corpus = str(DATA / "corpus")
    assert gates.main(["--cases", cases, "--corpus", corpus, "--json", str(out)]) == 0
    figures = json.loads(out.read_text())
    assert set(figures["l1"]) == {"precision", "recall", "f1", "false_alarms"}
    assert set(figures["chain"]) == {"recall", "false_alarms"}
    assert figures["l1"]["f1"] >= 0.9
    assert figures["chain"]["false_alarms"] <= 0.02
    for variant in ("nan_tensor", "bitflip_msb_1", "norm_div4"):
        assert figures["corpus"][variant]["caught_share"] == 1.0
    assert figures["corpus"]["clean"]["false_alarm_share"] == 0.0
    assert figures["corpus"]["clean"]["caught_share"] == 0.0
    assert figures["corpus"]["nan_tensor"]["by_gate"]["L3"] == 1.0
    assert all(row["f1"] < figures["l1"]["f1"] for row in figures["baselines"].values())


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "is not there"),
        ("{broken\n", "line 1: not JSON"),
        ("[]\n", "line 1: not a JSON object"),
        ('{"request": {}}\n', "no field 'response'"),
        (
            '{"request": {}, "response": {"logprobs": [3]}, "expect": "pass", "gate": null}\n',
            "line 1: odd case",
        ),
    ],
)
def test_bad_cases(
    content: str | None,
    complaint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The error names the file and the line."""
    path = tmp_path / "cases.jsonl"
    if content is not None:
        path.write_text(content)
    assert gates.main(["--cases", str(path)]) == 2
    assert complaint in capsys.readouterr().err


def test_bad_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty folder and a broken file are told apart."""
    assert gates.main(["--corpus", str(tmp_path)]) == 2
    assert "holds no *.jsonl.gz" in capsys.readouterr().err
    (tmp_path / "x.jsonl.gz").write_bytes(b"no gzip")
    assert gates.main(["--corpus", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err
    line = {"request": {}, "status": 200, "body": "{"}
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(json.dumps(line).encode()))
    assert gates.main(["--corpus", str(tmp_path)]) == 2
    assert "line 1: odd response" in capsys.readouterr().err


def test_nothing_to_do() -> None:
    """The usage says what to give."""
    with pytest.raises(SystemExit):
        gates.main([])


def test_completions_are_read() -> None:
    """Recorded answers of the other route are judged too."""
    choice = {"index": 0, "text": "<|im_end|>", "finish_reason": "stop", "logprobs": None}
    line = {
        "request": {"prompt": "x"},
        "status": 200,
        "body": json.dumps({"choices": [choice]}),
        "stream": False,
    }
    assert judge_answer(line, None).gates == {"L1"}
    assert judge_answer({**line, "status": 500}, None).gates == set()


def test_dearer_gates_judge_where_a_case_has_what_they_need() -> None:
    """A healthy answer for L4, a pattern for L5, a baseline for L2."""
    steps = [{"token": "owl ", "logprob": -7.0, "top": [["owl ", -7.0], ["bat ", -7.1]]}] * 40
    known = {"ppl_mean": 1.6, "ppl_std": 0.3, "entropy_mean": 0.4, "n": 500}
    strange = case(
        "fail", "L2", "owl " * 3 + "An owl is a bird that hunts at night.", baseline=known
    )
    strange["request"]["temperature"] = 0.7
    strange["response"]["logprobs"] = steps
    figures = scored(
        strange,
        case("fail", "L4", "No, owls hunt by day.", shadow_text="Yes, owls hunt at night."),
        case("fail", "L5", "An owl.", probe={"accept": "(?i)hedgehog"}),
        case("pass", "L5", "A hedgehog.", probe={"accept": "(?i)hedgehog"}),
    )
    for gate in ("L2", "L5"):
        assert figures["gates"][gate]["recall"] == 1.0
    assert figures["chain"]["false_alarms"] == 0.0


def test_an_instance_is_acted_on_after_six_prompts_or_one_proof() -> None:
    """As the shipped conditions do."""
    path = DATA / "corpus" / "nan_tensor.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    figures = measure_variant(path, lines, learn([]), None)
    assert figures["acted_after"] == figures["first_failure_after"] == 1
    assert acted_after([]) is None
