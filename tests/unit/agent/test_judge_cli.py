"""The command line of `judge`: what it reads, and the code with which it ends."""

import gzip
import json
from pathlib import Path

import pytest

from gatemesh_agent.judge_cli import CLEAN, FAILED, WRONG, baseline_of, main
from gatemesh_agent.saved import SavedError

ANSWERS = Path(__file__).resolve().parents[2] / "data" / "answers"
ENTRY = {"metric": "nll_whole", "decoding": "greedy", "script": "any", "count": 500}
ENTRY_FIGURES = {"median": 0.5, "mad": 0.1}


def chat(text: str) -> str:
    """Return a whole chat answer."""
    choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice]})


@pytest.mark.parametrize("name", ["response_stream_top2.sse", "message_whole.json"])
def test_a_clean_answer_ends_with_0(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And shows every gate."""
    assert main([str(ANSWERS / name)]) == CLEAN
    output = capsys.readouterr().out
    assert "without --request" in output
    assert "L1    passed" in output


def test_a_broken_answer_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text and JSON."""
    (tmp_path / "a.json").write_text(chat("The Loire\x00 and\x00 Rh\x00one.\x00"))
    (tmp_path / "r.json").write_text('{"messages":[{"role":"user","content":"Of rivers"}]}')
    file, request = str(tmp_path / "a.json"), str(tmp_path / "r.json")
    assert main([file, "--request", request]) == FAILED
    assert "[[" in capsys.readouterr().out
    assert main([file, "--json"]) == FAILED
    fields = json.loads(capsys.readouterr().out)
    assert (fields["answers"], fields["failed"]) == (1, 1)


def test_a_packed_file_of_many_shows_what_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the sums; all of them only when asked."""
    lines = "\n".join([chat("All is well."), chat("\x00\x00\x00")])
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    assert main([str(tmp_path / "a.jsonl.gz")]) == FAILED
    output = capsys.readouterr().out
    assert "gz, line 2" in output
    assert "gz, line 1" not in output
    assert "2 answers, 1 failed" in output
    main([str(tmp_path / "a.jsonl.gz"), "--all"])
    assert "gz, line 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["missing.json"], "missing.json cannot be read"),
        (["{file}", "--request", "missing.json"], "missing.json cannot be read"),
        (["{file}", "--baseline", "{file}"], "field 'entries'"),
        (["{file}", "--gate", "nobodys"], "--gate names 'nobodys', which is not installed here"),
        (["{file}", "--gate-settings", "a.b=c"], "--gate-settings holds 'a.b'"),
        (["{file}", "--gate-settings", "x"], "--gate-settings: write name=value"),
        (["{bad}"], "line 1: not JSON"),
    ],
)
def test_wrong_input_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    """It names file, line or field."""
    (tmp_path / "a.json").write_text(chat("Fine."))
    (tmp_path / "bad.json").write_text("{")
    places = {"file": tmp_path / "a.json", "bad": tmp_path / "bad.json"}
    assert main([each.format(**places) for each in arguments]) == WRONG
    assert says in capsys.readouterr().err.replace("\n", " ")


def test_a_baseline_is_a_message_or_its_entries(tmp_path: Path) -> None:
    """The field that is odd is named."""
    path = tmp_path / "b.json"
    for value in ([ENTRY | ENTRY_FIGURES], {"entries": [ENTRY | ENTRY_FIGURES]}):
        path.write_text(json.dumps(value))
        assert len(baseline_of(path).normals) == 1
    path.write_text(json.dumps([ENTRY]))
    with pytest.raises(SavedError, match="entries"):
        baseline_of(path)
    path.write_text("x")
    with pytest.raises(SavedError, match="not JSON"):
        baseline_of(path)


def test_what_no_gate_could_judge_is_not_clean(tmp_path: Path) -> None:
    """A stream that was cut off proves nothing."""
    saved = tmp_path / "cut.sse"
    event = {"choices": [{"index": 0, "delta": {"content": "A vole is"}, "finish_reason": None}]}
    saved.write_text(f"data: {json.dumps(event)}\n\n")
    assert main([str(saved)]) == WRONG
