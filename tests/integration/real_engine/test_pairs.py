"""Two real engines: alike, judges of each other, and one of them restarted."""

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gatemesh_common.messages import Decoding, Outcome
from gatemesh_shadow.replay import read_scores, score_body
from gatemesh_shadow.scores import DEFAULT_LIMITS, Figures, figures_of, judge_figures

from .conftest import MODEL, RunningEngine
from .test_answers import SEA, SPRING, steady, text_of

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]

QUESTION = "Explain in two sentences why bread rises."
SAMPLINGS: dict[Decoding, dict[str, Any]] = {
    Decoding.GREEDY: {"temperature": 0},
    Decoding.SAMPLED: {"temperature": 1.0, "seed": 5},
}


def judged_by(judge: RunningEngine, asked: RunningEngine, decoding: Decoding) -> Figures:
    """Ask one engine, and let the other score its tokens."""
    answer = asked.chat(
        QUESTION, logprobs=True, top_logprobs=1, return_token_ids=True, **SAMPLINGS[decoding]
    ).json()
    [choice] = answer["choices"]
    prompt, ids = answer["prompt_token_ids"], choice["token_ids"]
    own = [entry["logprob"] for entry in choice["logprobs"]["content"]]
    body = score_body(MODEL, [*prompt, *ids])
    scores = read_scores(judge.post("/v1/completions", body).json(), ids)
    is_greedy = decoding is Decoding.GREEDY
    return figures_of(scores.chosen, scores.favourite, own, greedy=is_greedy)


@pytest.mark.parametrize("decoding", list(SAMPLINGS))
def test_healthy_engines_agree(
    engine: RunningEngine, second_engine: RunningEngine, decoding: Decoding
) -> None:
    """By default limits, with room to spare."""
    figures = judged_by(second_engine, engine, decoding)
    assert judge_figures(figures, DEFAULT_LIMITS[decoding]).outcome is Outcome.PASSED
    assert figures.distance is not None
    assert figures.distance < DEFAULT_LIMITS[decoding].distance / 2


def test_a_spoilt_engine_is_found(engine: RunningEngine, second_engine: RunningEngine) -> None:
    """Its tokens are not what the other one finds likely, however sure it says it is."""
    with engine.drill("shift"):
        figures = judged_by(second_engine, engine, Decoding.GREEDY)
    assert judge_figures(figures, DEFAULT_LIMITS[Decoding.GREEDY]).outcome is Outcome.FAILED


def test_tokenize_gives_the_prompt(engine: RunningEngine) -> None:
    """The very ids that the chat route used."""
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": MODEL, "messages": messages, "add_generation_prompt": True}
    found = engine.post("/tokenize", body).json()
    answer = engine.chat(QUESTION, return_token_ids=True, max_tokens=1).json()
    assert found["tokens"] == answer["prompt_token_ids"]
    assert found["max_model_len"] > len(found["tokens"])


def test_both_answer_both_languages_at_once(
    engine: RunningEngine, second_engine: RunningEngine
) -> None:
    """The demo's traffic: streamed and whole, English and Chinese, to both engines at once."""
    calls = [
        (asked, prompt, stream)
        for asked in (engine, second_engine)
        for prompt in (SEA, SPRING)
        for stream in (False, True)
    ]
    with ThreadPoolExecutor(len(calls)) as pool:
        answers = list(pool.map(lambda call: call[0].chat(call[1], stream=call[2]), calls))
    assert [answer.status for answer in answers] == [200] * len(calls)
    for answer, (_, _, stream) in zip(answers, calls, strict=True):
        assert text_of(answer, stream=stream).strip()


def test_replicas_agree_when_asked_alike(
    engine: RunningEngine, second_engine: RunningEngine
) -> None:
    """The same greedy request, alone on each engine, gives the same bytes."""
    assert steady(engine.chat(SEA).body) == steady(second_engine.chat(SEA).body)


def test_a_restart_ends_the_drill_though_the_file_stays(second_engine: RunningEngine) -> None:
    """SIGTERM drains, refuses newcomers with 500, and the next life is clean."""
    clean = second_engine.chat(SEA)
    with second_engine.drill("stuck"), ThreadPoolExecutor(1) as pool:
        running = pool.submit(second_engine.chat, SEA, max_tokens=150, stream=True)
        assert text_of(second_engine.chat(SEA), stream=False) != text_of(clean, stream=False)
        second_engine.process.send_signal(signal.SIGTERM)
        refused = await_refusal(second_engine)
        assert running.result().events()[-1]["choices"][0]["finish_reason"] == "length"
        second_engine.process.wait(60)
        second_engine.kill()
        assert refused.json()["error"]["message"] == "cannot schedule new futures after shutdown"
        second_engine.start()
        second_engine.await_ready()
        assert text_of(second_engine.chat(SEA), stream=False) == text_of(clean, stream=False)


def await_refusal(engine: RunningEngine) -> Any:
    """Ask until the draining engine refuses."""
    for _ in range(50):
        answer = engine.chat(SEA, max_tokens=1)
        if answer.status == 500:
            return answer
    raise AssertionError("the draining engine refused nobody")
