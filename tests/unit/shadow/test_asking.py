"""Asking judges, one after the other where need be."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.shadow.parts import NOW, TOKENS, Engines, engine, instance, replicas_of, sample_of

from gatemesh_common.messages import RoutedInstance
from gatemesh_shadow import asking
from gatemesh_shadow.asking import Question, Replicas
from gatemesh_shadow.errors import (
    ReplicaBrokenError,
    ReplicaRefusedError,
    ReplicaUnavailableError,
    SampleExpiredError,
)

QUESTION = Question("/v1/chat/completions", sample_of().request)
PAIR = (instance("engine-0"), instance("engine-1"), instance("engine-2"))


async def ask(replicas: Replicas) -> tuple[RoutedInstance, list[int]] | None:
    """Let a judge tokenize."""

    async def work(judge: RoutedInstance) -> list[int]:
        return await replicas.tokens_of(judge, QUESTION, "x")

    return await replicas.with_judge(sample_of(), work)


def failing(error: Exception) -> Any:
    """An instance that never answers well."""

    def say(_path: str, _body: Mapping[str, Any]) -> dict[str, Any]:
        raise error

    return say


@pytest.mark.parametrize("error", [ReplicaUnavailableError("x"), ReplicaBrokenError("x")])
async def test_another_judge_takes_over(error: Exception) -> None:
    """The accused one is never among them."""
    engines = Engines({"engine-0": failing(error), "engine-2": engine()})
    found = await ask(replicas_of(engines, *PAIR))
    assert found is not None
    assert found[0].instance_id == "engine-2"
    assert [name for name, _ in engines.asked] == ["engine-0", "engine-2"]


async def test_of_a_long_text_only_what_is_scored_is_tokenized() -> None:
    """A whole book would hold up the instance that judges."""
    sent: list[int] = []

    def note(_path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        sent.append(len(body["prompt"]))
        return {"tokens": [1]}

    replicas = replicas_of(Engines({"engine-0": note}), *PAIR)
    assert await replicas.tokens_of(PAIR[0], QUESTION, "x" * 10_000_000) == [1]
    assert sent == [replicas.most_tokens * asking.MOST_TOKEN_CHARS]


async def test_a_refusal_is_final() -> None:
    """Another instance would refuse it, too."""
    engines = Engines({"engine-0": failing(ReplicaRefusedError(400)), "engine-2": engine()})
    with pytest.raises(ReplicaRefusedError):
        await ask(replicas_of(engines, *PAIR))


async def test_no_judge() -> None:
    """None, at once."""
    assert await ask(replicas_of(Engines(), instance("engine-1"))) is None


async def test_it_gives_up_when_the_sample_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before."""
    monkeypatch.setattr(asking, "FIRST_DELAY_S", 0.0)
    engines = Engines({"engine-0": failing(ReplicaUnavailableError("x"))})
    replicas = replicas_of(engines, instance("engine-0"))
    ages = iter([0, 60, 120, 121])
    replicas.clock = lambda: NOW + timedelta(seconds=next(ages))
    with pytest.raises(SampleExpiredError):
        await ask(replicas)
    assert len(engines.asked) == 3


async def test_the_prompt_leaves_room() -> None:
    """One token is generated besides; a prompt of ids needs no question."""
    replicas = replicas_of(Engines({"engine-0": engine()}), *PAIR)
    assert await replicas.prompt(PAIR[0], QUESTION, 8) == ([1, 2, 3], 8)
    assert (await replicas.prompt(PAIR[0], QUESTION, 9999))[1] == 2048 - 3 - 1
    given = Question("/v1/completions", {"prompt": [7, 8]})
    assert await replicas.prompt(PAIR[0], given, 8) == ([7, 8], 8)


@pytest.mark.parametrize(
    "answer", [{}, {"tokens": None, "choices": []}, {"tokens": ["x"], "choices": [None]}]
)
async def test_an_answer_of_another_shape_is_a_broken_instance(answer: dict[str, Any]) -> None:
    """It neither ends the shadow nor loses the sample: another judge is asked."""
    replicas = replicas_of(Engines({"engine-0": lambda _path, _body: answer}), *PAIR)
    with pytest.raises(ReplicaBrokenError):
        await replicas.scores(PAIR[0], QUESTION, [1, 2], TOKENS)
    with pytest.raises(ReplicaBrokenError):
        await replicas.second(PAIR[0], QUESTION)
    with pytest.raises(ReplicaBrokenError):
        await replicas.prompt(PAIR[0], QUESTION, 8)
    with pytest.raises(ReplicaBrokenError):
        await replicas.tokens_of(PAIR[0], QUESTION, "x")


async def test_scores_and_second_answers() -> None:
    """As the engine gives them."""
    replicas = replicas_of(Engines({"engine-0": engine()}), *PAIR)
    scores = await replicas.scores(PAIR[0], QUESTION, [1, 2], TOKENS)
    assert len(scores.chosen) == len(TOKENS)
    assert (await replicas.second(PAIR[0], QUESTION)).text == "Roses need sun and water."
