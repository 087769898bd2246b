"""Second answers of healthy instances."""

from typing import Any

import pytest
from tests.unit.shadow.parts import TOKENS, Engines, engine, instance, replicas_of, sample_of

from gatemesh_common.messages import Decoding, Outcome, Reason
from gatemesh_shadow.answering import SecondAnswers, comparable
from gatemesh_shadow.asking import Question
from gatemesh_shadow.batching import Batcher
from gatemesh_shadow.embed import Embedder
from gatemesh_shadow.errors import ModelUnavailableError
from gatemesh_shadow.limits import VersionLimits
from gatemesh_shadow.pair import PairLimits
from gatemesh_shadow.replay import SecondAnswer
from gatemesh_shadow.splits import Token

LONG = "A well kept garden needs water, light, patience and somebody who pulls the weeds each week."
OTHER = "Whoever wants roses has to water them, give them sun, wait, and weed the beds all summer."


def embedder_of(cosine: float | Exception, language: str = "en") -> Embedder:
    """A model that finds all pairs alike to this degree."""

    def work(pairs: Any) -> list[float]:
        if isinstance(cosine, Exception):
            raise cosine
        return [cosine] * len(pairs)

    return Embedder({language: Batcher(work, 8, 0.0)})


def answers_of(embedder: Embedder | None = None, text: str = OTHER, ids: Any = ()) -> SecondAnswers:
    """A healthy instance that says this."""
    engines = Engines({"engine-0": engine(text=text, ids=ids)})
    replicas = replicas_of(engines, instance("engine-0"), instance("engine-1"))
    return SecondAnswers(replicas, embedder, PairLimits())


async def judged(answers: SecondAnswers, **sample: Any) -> Any:
    """Judge one sample."""
    found = sample_of(**{"text": LONG, "token_ids": None, "logprobs": None, **sample})
    return await answers.judge(found, Question(found.path, found.request), VersionLimits())


@pytest.mark.parametrize(("cosine", "outcome"), [(0.9, Outcome.PASSED), (0.1, Outcome.FAILED)])
async def test_meaning_is_compared(cosine: float, outcome: Outcome) -> None:
    """By the model, where rules say nothing."""
    compared = await judged(answers_of(embedder_of(cosine)))
    assert compared.judgement.outcome is outcome
    assert compared.judgement.score == cosine
    assert (compared.judge.instance_id, compared.cosine) == ("engine-0", cosine)


async def test_without_a_model_it_is_said() -> None:
    """Skipped, never passed."""
    compared = await judged(answers_of())
    assert (compared.judgement.outcome, compared.judgement.reason) == (
        Outcome.SKIPPED,
        Reason.NOT_COMPARABLE,
    )
    assert compared.judgement.details["why"] == "no_sentence_model"


async def test_other_languages_are_skipped() -> None:
    """A model that does not know the language compares nothing."""
    compared = await judged(answers_of(embedder_of(0.9, language="zh")))
    assert (compared.judgement.outcome, compared.judgement.reason) == (
        Outcome.SKIPPED,
        Reason.OTHER_LANGUAGE,
    )


async def test_a_model_that_is_lost_is_done_without() -> None:
    """The sample is no poison."""
    answers = answers_of(embedder_of(ModelUnavailableError("gone")))
    assert (await judged(answers)).judgement.outcome is Outcome.SKIPPED
    assert answers.embedder is None


async def test_equal_tokens_are_exact() -> None:
    """Up to the end of the shorter one."""
    answers = answers_of(ids=TOKENS)
    compared = await judged(answers, token_ids=TOKENS[:5])
    assert (compared.judgement.outcome, compared.judgement.details["measure"]) == (
        Outcome.PASSED,
        "tokens",
    )


async def test_a_wide_split_fails() -> None:
    """A healthy instance found the first one's token much less likely."""
    answers = answers_of()
    second = SecondAnswer(OTHER, (), (Token(11, {11: -0.1, 99: -4.0}),))
    sample = sample_of(text=LONG, token_ids=(99, 12))
    question = Question(sample.path, sample.request)
    compared = await answers.compare(sample, question, second, VersionLimits())
    assert compared.judgement.reason is Reason.ANSWERS_DIFFER
    assert compared.judgement.details["gap_nats"] == 3.9
    assert compared.judgement.details["split_token"] == 0


async def test_no_judge() -> None:
    """Skipped, with the reason."""
    answers = SecondAnswers(replicas_of(Engines(), instance("engine-1")), None, PairLimits())
    assert (await judged(answers)).judgement.reason is Reason.NO_REPLICA


def test_texts_are_cut_alike() -> None:
    """A second answer that had to end is compared as far as it goes."""
    assert comparable("abcdef", SecondAnswer("abc", (), (), cut=True)) == ("abc", "abc")
    assert comparable("abcdef", SecondAnswer("abc", (), ())) == ("abcdef", "abc")


async def test_drawn_answers_have_their_own_limit() -> None:
    """0.3 is far apart for greedy answers, near enough for drawn ones."""
    answers = answers_of(embedder_of(0.3))
    request = {**sample_of().request, "temperature": 0.9}
    drawn = await judged(answers, request=request, decoding=Decoding.SAMPLED)
    assert drawn.judgement.outcome is Outcome.PASSED
    assert (await judged(answers)).judgement.outcome is Outcome.FAILED
