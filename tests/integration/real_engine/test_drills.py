"""Faults inside the running engine: what each looks like from outside, and where each ends."""

import json
import math
from typing import Any

import pytest

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]

PROMPT = "Write one sentence about the sea."
WITH_LOGPROBS = {"logprobs": True, "top_logprobs": 20}
VOCABULARY = 49_152
NAN_REFUSAL = {
    "error": {
        "message": "Out of range float values are not JSON compliant",
        "type": "BadRequestError",
        "param": None,
        "code": 400,
    }
}


def test_nan_is_refused_whole_and_null_in_a_stream(engine: Any) -> None:
    """The hard proof that the agent relies on, in both of its forms."""
    with engine.drill("nan"):
        whole = engine.chat(PROMPT, **WITH_LOGPROBS)
        stream = engine.chat(PROMPT, stream=True, **WITH_LOGPROBS)
        silent = engine.chat(PROMPT)
    assert (whole.status, whole.json()) == (400, NAN_REFUSAL)
    assert stream.status == 200
    assert {entry["logprob"] for entry in stream.entries()} == {None}
    assert (silent.status, silent.json()["choices"][0]["message"]["content"]) == (200, "")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("temperature", [0, 1])
def test_flat_shows_equal_logprobs(engine: Any, temperature: int, *, stream: bool) -> None:
    """Every token of the vocabulary is as likely as any other."""
    with engine.drill("flat"):
        answer = engine.chat(PROMPT, temperature=temperature, stream=stream, **WITH_LOGPROBS)
    figures = [top["logprob"] for entry in answer.entries() for top in entry["top_logprobs"]]
    assert figures
    assert figures == pytest.approx([-math.log(VOCABULARY)] * len(figures), abs=1e-3)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_stuck_repeats_one_token(engine: Any, *, stream: bool) -> None:
    """One token for ever, with certainty."""
    with engine.drill("stuck"):
        answer = engine.chat(PROMPT, stream=stream, **WITH_LOGPROBS)
    assert len({entry["token"] for entry in answer.entries()}) == 1
    assert all(entry["logprob"] > -0.01 for entry in answer.entries())


def test_shift_spoils_the_text_and_not_the_figures(engine: Any) -> None:
    """Wrong tokens with healthy-looking logprobs: the text gates have to see it."""
    clean = engine.chat(PROMPT, **WITH_LOGPROBS)
    with engine.drill("shift"):
        spoiled = engine.chat(PROMPT, **WITH_LOGPROBS)
    assert spoiled.status == 200
    assert text_of(spoiled) != text_of(clean)
    assert spoiled.entries()[0]["logprob"] == pytest.approx(clean.entries()[0]["logprob"], abs=1e-3)


def test_clean_before_and_after_a_drill(engine: Any) -> None:
    """Taking the file away ends the fault without a restart."""
    before = engine.chat(PROMPT)
    with engine.drill("stuck"):
        during = engine.chat(PROMPT)
    assert text_of(during) != text_of(before) == text_of(engine.chat(PROMPT))


def test_the_first_tokens_can_stay_good(engine: Any) -> None:
    """`after_tokens` lets a stream begin well and turn bad."""
    with engine.drill("nan", after_tokens=5):
        answer = engine.chat(PROMPT, stream=True, **WITH_LOGPROBS)
    figures = [entry["logprob"] for entry in answer.entries()]
    assert [figure is None for figure in figures] == [False] * 5 + [True] * (len(figures) - 5)


def test_a_drill_for_another_life_does_nothing(engine: Any) -> None:
    """A file that was left over must not spoil the engine that was started after it."""
    clean = engine.chat(PROMPT)
    with engine.drill("stuck", pgid=engine.process.pid + 1):
        assert text_of(engine.chat(PROMPT)) == text_of(clean)


def test_other_requests_of_a_batch_stay_good(engine: Any) -> None:
    """With a probability of 0 the drill is on and nobody is hit."""
    clean = engine.chat(PROMPT)
    with engine.drill("stuck", probability=0.0):
        assert text_of(engine.chat(PROMPT)) == text_of(clean)


def test_the_engine_says_when_a_drill_began(engine: Any) -> None:
    """The demo's timeline starts at the receipt."""
    with engine.drill("stuck"):
        engine.chat(PROMPT)
    receipt = json.loads(engine.options.chaos_file.with_name("drill.json.fired").read_text())
    assert (receipt["fault"], receipt["pgid"]) == ("stuck", engine.process.pid)


def text_of(answer: Any) -> str:
    """The text of a whole chat answer."""
    return str(answer.json()["choices"][0]["message"]["content"])
