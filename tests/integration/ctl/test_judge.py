"""`gatemesh-ctl judge` as operators run it: one process, an exit code that tells."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

DATA = Path(__file__).resolve().parents[2] / "data"
CASES = DATA / "gates" / "own_cases.jsonl"
RECORDED = [DATA / "gates" / "corpus" / f"{name}.jsonl.gz" for name in ("clean", "nan_tensor")]
NO_STACK = {"GATEMESH_AMQP_URL": "amqp://nobody@127.0.0.1:1/", "PATH": ""}


def judge(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the command; it needs neither broker nor database."""
    program = [sys.executable, "-c", "from gatemesh_ctl.cli import main; main()", "judge"]
    return subprocess.run(
        [*program, *arguments],
        check=False,
        input=given,
        capture_output=True,
        timeout=120,
        env=NO_STACK,
    )


def test_a_clean_stream_from_standard_input() -> None:
    """Code 0, and every gate is shown."""
    stream = (DATA / "answers" / "response_stream_top2.sse").read_bytes()
    ended = judge("-", "--vocab-size", "49152", given=stream)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"standard input  passed" in ended.stdout
    assert b"L3    passed" in ended.stdout


def test_cases_are_told_with_their_labels() -> None:
    """Code 1: some of them have to fail."""
    ended = judge(str(CASES), "--json")
    assert ended.returncode == 1
    fields = json.loads(ended.stdout)
    assert fields["answers"] == len(CASES.read_text().strip().splitlines())
    assert 0 < fields["failed"] < fields["answers"]
    assert {result["expect"] for result in fields["results"]} == {"pass", "fail"}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_answers_of_a_real_engine(path: Path) -> None:
    """A whole file in one run; only the clean engine's pass."""
    ended = judge(str(path), "--json", "--vocab-size", "49152")
    fields = json.loads(ended.stdout)
    assert ended.returncode == (1 if fields["failed"] else 0)
    assert (fields["failed"] == 0) is path.name.startswith("clean")


def test_colour_marks_the_span() -> None:
    """Escape codes around what is at fault, none where they are not wanted."""
    answer = {"choices": [{"index": 0, "text": "a\x00b\x00c\x00", "finish_reason": "stop"}]}
    given = json.dumps(answer).encode()
    coloured, plain = (judge("-", "--color", how, given=given) for how in ("always", "never"))
    assert coloured.returncode == plain.returncode == 1
    assert b"\x1b[" in coloured.stdout
    assert b"\x1b[" not in plain.stdout
    assert b"[[" in plain.stdout


def test_a_line_that_is_no_answer_ends_with_2() -> None:
    """The line and the field are named; a help text is no failure."""
    ended = judge("-", given=b'{"choices":[]}\n{"request":{},"status":200}\n')
    assert ended.returncode == 2
    assert b"line 2: no field that is known" in ended.stderr
    assert judge("--help").returncode == 0
    assert judge().returncode == 2
