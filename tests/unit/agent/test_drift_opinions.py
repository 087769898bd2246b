"""A drift is withheld until enough answers of others were compared."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.agent.test_second_opinion import LIFE, Bench, Engines, accusation, other_request

from gatemesh_agent import second_opinion
from gatemesh_agent.attribution import Accusation
from gatemesh_agent.judging import AnswerJudge
from gatemesh_agent.second_opinion import MOST_WITHHELD
from gatemesh_common.messages import Attribution, CheckLevel, Reason, Verdict

BAD_SCORE = 2.5
LEAN = {"metric": "nll_whole", "direction": 1, "answer_score": BAD_SCORE, "life_score": 2.0}


def drift(number: int) -> Accusation:
    """Return what one of many different answers adds to the suspicion."""
    plain = accusation(LIFE, hard=False)
    verdict = plain.verdict.model_copy(
        update={"check_level": CheckLevel.L2, "reason": Reason.DRIFT, "details": LEAN}
    )
    return replace(plain, verdict=verdict, request=other_request(number))


def bench_of(score: float | None, engines: Engines, **terms: Any) -> Bench:
    """Return second opinions whose witnesses score so."""
    bench = Bench(engines, **terms)
    judging = bench.opinions._judging
    judged = judging.judged

    def scored(*given: Any) -> AnswerJudge:
        given[-1].score = score
        return judged(*given)

    judging.judged = scored  # type: ignore[assignment, method-assign]
    return bench


def reasons(bench: Bench) -> list[str]:
    """Return how it was found out whose fault the published verdicts are."""
    verdicts = [each for each in bench.published if isinstance(each, Verdict)]
    return [str(each.details["attributed_by"]) for each in verdicts]


@pytest.mark.parametrize(
    ("score", "ruling"), [(0.0, Attribution.INSTANCE), (BAD_SCORE, Attribution.REQUEST)]
)
async def test_many_witnesses_rule_on_all_that_was_withheld(
    score: float, ruling: Attribution
) -> None:
    """And on what comes next, without asking anybody."""
    engines = Engines()
    engines.may_answer.set()
    bench = bench_of(score, engines)
    for number in range(9):
        bench.opinions.accuse(drift(number))
    assert await bench.rulings() == [ruling] * 9
    asked = engines.asked
    bench.opinions.accuse(drift(10))
    assert await bench.rulings() == [ruling] * 10
    assert engines.asked == asked
    assert reasons(bench)[-1] == "known"


async def test_one_witness_is_not_enough() -> None:
    """What nobody has confirmed in time is no verdict."""
    engines = Engines()
    engines.may_answer.set()
    bench = bench_of(0.0, engines)
    bench.opinions.accuse(drift(0))
    await asyncio.sleep(0.05)
    assert engines.asked == 1
    assert not bench.published
    await bench.opinions.stop()
    assert await bench.rulings() == []


async def test_the_wait_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no witness can be measured."""
    monkeypatch.setattr(second_opinion, "DRIFT_WAIT_S", 0.05)
    engines = Engines()
    engines.may_answer.set()
    bench = bench_of(None, engines)
    for number in range(9):
        bench.opinions.accuse(drift(number))
    assert await bench.rulings() == []


async def test_no_more_are_withheld_than_count() -> None:
    """Each holds on to a request."""
    bench = bench_of(0.0, Engines())
    for number in range(MOST_WITHHELD + 5):
        bench.opinions.accuse(drift(number))
    assert sum(map(len, bench.opinions._pending.values())) == MOST_WITHHELD
    await bench.opinions.stop()


@pytest.mark.parametrize("terms", [{"per_minute": 0}, {"at_once": 0}])
async def test_where_nobody_is_ever_asked_a_drift_counts_as_it_is(terms: dict[str, Any]) -> None:
    """Second tries are turned off."""
    bench = bench_of(0.0, Engines(), **terms)
    bench.opinions.accuse(drift(0))
    assert await bench.rulings() == [Attribution.UNKNOWN]


async def test_another_witness_is_asked_where_one_does_not_answer() -> None:
    """An engine without room is no reason to leave a failure unexplained."""
    engines = Engines(status=503, body=b"{}")
    engines.may_answer.set()
    bench = Bench(engines, instances="abc")
    bench.opinions.accuse(accusation())
    assert await bench.rulings() == [Attribution.UNKNOWN]
    assert engines.asked == 2
