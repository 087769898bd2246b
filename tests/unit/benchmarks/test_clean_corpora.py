"""False alarms are counted and listed."""

import gzip
import json
import random
from pathlib import Path

import pytest
from benchmarks import clean_corpora
from benchmarks.clean_sources import CleanText

from gatemesh_common.messages import Outcome

GOOD = CleanText("en", "owls", "Tell me about owls.", "Owls hunt at night. They fly without noise.")
BAD = CleanText("en", "broken", "Tell me about owls.", "Owls hunt" + "!" * 60, "length")


def test_alarms_are_listed() -> None:
    """Each alarm names its text, its reason and the place."""
    found = clean_corpora.measure([GOOD, BAD, GOOD], random.Random(1))
    assert (found["texts"], found["alarms"], found["groups"]) == (3, 1, {"en": 3})
    (alarm,) = found["list"]
    assert (alarm["reason"], alarm["name"], alarm["at"]) == ("repetition", "broken", 9)


def answer(text: str, *, stream: bool) -> dict[str, object]:
    """Return one recorded line."""
    if stream:
        parts: list[dict[str, object]] = [
            {"delta": {"content": part}} for part in (text[:5], text[5:])
        ]
        parts.append({"delta": {}, "finish_reason": "stop"})
        events = [json.dumps({"choices": [{"index": 0, **part}]}) for part in parts]
        body = "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])
    else:
        choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
        body = json.dumps({"choices": [choice]})
    request = {"messages": [{"role": "user", "content": "Tell me."}], "temperature": 0}
    line = {"prompt_id": "q1", "mode": "greedy", "stream": stream, "request": request}
    return {**line, "status": 200, "body": body}


@pytest.mark.parametrize("stream", [True, False])
def test_recorded_answers(
    *, stream: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Answers are read as the engine sent them; refused requests are left out."""
    path = tmp_path / "answers.jsonl.gz"
    lines = [answer(GOOD.text, stream=stream), answer("Hm.<|im_end|>", stream=stream)]
    lines.append({**lines[0], "status": 400})
    with gzip.open(path, "wt") as written:
        written.writelines(json.dumps(line) + "\n" for line in lines)
    out = tmp_path / "out.json"
    flags = ["--answers", "2", "--answers-file", str(path), "--json", str(out)]
    assert clean_corpora.main(flags) == 0
    found = json.loads(out.read_text())["answers"]
    assert (found["texts"], found["alarms"]) == (2, 1)
    assert "special_tokens" in capsys.readouterr().out
    assert clean_corpora.main(["--answers", "3", "--answers-file", str(path)]) == 1


def test_the_gate_is_the_agents() -> None:
    """A good text passes."""
    request = clean_corpora.request_of(GOOD)
    verdict = clean_corpora.judge(request, GOOD.text, "stop", random.Random(2))
    assert verdict.outcome is Outcome.PASSED
