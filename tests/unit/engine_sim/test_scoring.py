"""What the simulated engine says about given tokens."""

from collections.abc import Callable

import pytest

from gatemesh_engine_sim.answering import plan_answer
from gatemesh_engine_sim.fault_plan import FaultSpec
from gatemesh_engine_sim.faults import fault_table
from gatemesh_engine_sim.generation import Emission
from gatemesh_engine_sim.intake import Asked
from gatemesh_engine_sim.library import Library
from gatemesh_engine_sim.scoring import BROKEN_NATS, STRANGE_NATS, Scorer
from gatemesh_engine_sim.steps import text_of

Ask = Callable[..., Asked]
QUESTIONS = (
    "Tell me about bread.",
    "What is the capital of France?",
    "What is 3 + 4?",
    "介绍一下面包。",
    "Why is the sky blue?",
)


@pytest.fixture(scope="module")
def scorer(library: Library) -> Scorer:
    """Built once: it knows every passage."""
    return Scorer(library)


def answered(asked: Asked, library: Library, fault: str | None = None) -> list[Emission]:
    """The answer of an engine, spoilt if told so."""
    spec = FaultSpec(fault=fault) if fault else None
    return plan_answer(asked, spec, fault_table(library), library).choices[0]


def figures_of(scorer: Scorer, asked: Asked, answer: list[Emission]) -> list[float]:
    """Log probabilities of the answer's tokens."""
    ids = [*asked.prompt_ids, *(one.step.token_id for one in answer)]
    entries = scorer.score(ids, 0)[len(asked.prompt_ids) :]
    return [float(str(next(iter((entry or {}).values()))["logprob"])) for entry in entries]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("more", [{}, {"seed": 7}, {"max_tokens": 5}])
def test_a_clean_answer_scores_as_it_was_made(
    ask: Ask, library: Library, scorer: Scorer, question: str, more: dict[str, int]
) -> None:
    """Two healthy engines agree on every token, whatever the seed."""
    asked = ask(messages=[{"role": "user", "content": question}], **more)
    answer = answered(asked, library)
    assert figures_of(scorer, asked, answer) == [one.step.logprob for one in answer]


def test_a_recorded_text_scores_well_in_other_tokens(library: Library, scorer: Scorer) -> None:
    """Who knows only an answer's text has it tokenized, and the model's own tokens differ."""
    words = library.vocabulary
    recorded = next(library.passages())
    ids = words.encode(text_of(recorded))
    assert ids != [step.token_id for step in recorded[:-1]]
    entries = scorer.score([1, *ids], 0)[1:]
    assert all(
        dict(entry or {})[str(one)]["logprob"] != STRANGE_NATS
        for one, entry in zip(ids, entries, strict=True)
    )


def test_json_scores_as_it_was_made(ask: Ask, library: Library, scorer: Scorer) -> None:
    """The scoring request names no response format."""
    asked = ask(response_format={"type": "json_object"})
    answer = answered(asked, library)
    assert figures_of(scorer, asked, answer) == [one.step.logprob for one in answer]


@pytest.mark.parametrize("fault", ["shift", "salad", "stuck", "mojibake", "wrong_choice", "bang"])
def test_garbage_scores_low(ask: Ask, library: Library, scorer: Scorer, fault: str) -> None:
    """As on the real engine: several nats per token."""
    asked = ask(max_tokens=40)
    figures = figures_of(scorer, asked, answered(asked, library, fault))
    assert sum(figures) / len(figures) < -5


def test_entries_are_vllms(scorer: Scorer, library: Library) -> None:
    """The first is null; a strange token comes with the likelier one where asked."""
    ids = library.vocabulary.encode("Zxqv zxqv")
    first, second, *_ = scorer.score(ids, 1)
    assert first is None
    assert second is not None
    assert next(iter(second)) == str(ids[1])
    assert set(second[str(ids[1])]) == {"logprob", "rank", "decoded_token"}
    chosen, likelier = second.values()
    assert chosen["logprob"] == STRANGE_NATS
    assert likelier["rank"] == 1
    assert scorer.score(ids, 0)[1] == {str(ids[1]): chosen}


def test_a_broken_engine_scores_everything_alike(scorer: Scorer) -> None:
    """Equal logits."""
    first, *rest = scorer.broken([5, 6, 7])
    assert first is None
    assert [next(iter((one or {}).values()))["logprob"] for one in rest] == [BROKEN_NATS] * 2
