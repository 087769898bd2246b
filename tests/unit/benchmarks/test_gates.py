"""The gate benchmark follows the scoring rules and says what is wrong with its input."""

import gzip
import importlib.util
import json
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "gates"


@pytest.fixture(name="gates", scope="module")
def gates_module() -> ModuleType:
    """Return the benchmark as a module."""
    spec = importlib.util.spec_from_file_location("gates_benchmark", ROOT / "benchmarks/gates.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def scored(gates: ModuleType, *cases: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of some cases."""
    rng = random.Random(1)
    figures: dict[str, Any] = gates.score_cases([gates.judge_case(fields, rng) for fields in cases])
    return figures


def test_scoring(gates: ModuleType) -> None:
    """A case is caught by its own gate or a cheaper one; any failing gate is a false alarm."""
    figures = scored(
        gates,
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


def test_steps_arrive_with_their_text(gates: ModuleType) -> None:
    """Log probabilities of a case reach L3."""
    null = {"token": "An", "logprob": None, "top": [["An", None]]}
    fields = case("fail", "L3", "An owl is a bird.")
    fields["response"]["logprobs"] = [null]
    assert scored(gates, fields)["gates"]["L3"]["recall"] == 1.0


def test_onset(gates: ModuleType) -> None:
    """Latency is counted from where the text goes bad."""
    figures = scored(gates, case("fail", "L1", "Owls " + "!" * 200, onset=5))
    assert figures["onset_chars"]["fired"] == 1
    assert 28 < figures["onset_chars"]["median"] < 64


def test_own_cases_and_corpus(gates: ModuleType, tmp_path: Path) -> None:
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
    gates: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The error names the file and the line."""
    path = tmp_path / "cases.jsonl"
    if content is not None:
        path.write_text(content)
    assert gates.main(["--cases", str(path)]) == 2
    assert complaint in capsys.readouterr().err


def test_bad_corpus(gates: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_nothing_to_do(gates: ModuleType) -> None:
    """The usage says what to give."""
    with pytest.raises(SystemExit):
        gates.main([])


def test_completions_are_read(gates: ModuleType) -> None:
    """Recorded answers of the other route are judged too."""
    choice = {"index": 0, "text": "<|im_end|>", "finish_reason": "stop", "logprobs": None}
    line = {
        "request": {"prompt": "x"},
        "status": 200,
        "body": json.dumps({"choices": [choice]}),
        "stream": False,
    }
    assert gates.judge_answer(line, None) == ({"L1"}, False)
    assert gates.judge_answer({**line, "status": 500}, None) == (set(), False)
