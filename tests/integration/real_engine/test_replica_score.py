"""Two real engines judge each other, as the shadow lets them."""

from typing import Any

import pytest

from gatemesh_common.messages import Decoding, Outcome
from gatemesh_shadow.replay import read_scores, score_body
from gatemesh_shadow.scores import DEFAULT_LIMITS, Figures, figures_of, judge_figures

from .conftest import MODEL, RunningEngine

pytestmark = pytest.mark.real_engine

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
def test_healthy_engines_agree(engines: list[RunningEngine], decoding: Decoding) -> None:
    """By default limits, with room to spare."""
    first, second = engines
    figures = judged_by(second, first, decoding)
    assert judge_figures(figures, DEFAULT_LIMITS[decoding]).outcome is Outcome.PASSED
    assert figures.distance is not None
    assert figures.distance < DEFAULT_LIMITS[decoding].distance / 2


def test_a_spoilt_engine_is_found(engines: list[RunningEngine]) -> None:
    """Its tokens are not what the other one finds likely, however sure it says it is."""
    first, second = engines
    with first.drill("shift"):
        figures = judged_by(second, first, Decoding.GREEDY)
    assert judge_figures(figures, DEFAULT_LIMITS[Decoding.GREEDY]).outcome is Outcome.FAILED


def test_tokenize_gives_the_prompt(engine: RunningEngine) -> None:
    """The very ids that the chat route used."""
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": MODEL, "messages": messages, "add_generation_prompt": True}
    found = engine.post("/tokenize", body).json()
    answer = engine.chat(QUESTION, return_token_ids=True, max_tokens=1).json()
    assert found["tokens"] == answer["prompt_token_ids"]
    assert found["max_model_len"] > len(found["tokens"])
