"""Whose fault a failure is."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.attribution import (
    FEWEST_PRECEDENTS,
    MOST_REQUESTS,
    WHOLE,
    Charge,
    Docket,
    Finding,
    Kind,
    Precedent,
    Precedents,
    Told,
    TryBudget,
    Witness,
    bounded_copy,
    bounded_length,
    finding_of,
    request_key,
)
from gatemesh_agent.gates.judgement import Judgement, passed
from gatemesh_agent.reporting import Life
from gatemesh_agent.requests import Route, understand
from gatemesh_common.messages import Attribution, CheckLevel, Outcome, Reason

SOFT = Judgement(CheckLevel.L1, Outcome.FAILED, Reason.EMPTY)
HARD = Judgement(CheckLevel.L3, Outcome.FAILED, Reason.NAN_LOGITS, hard=True)
CHAT_PATH = "/v1/chat/completions"


LEVELS = frozenset({CheckLevel.L1, CheckLevel.L3})


def witness(
    instance_id: str, finding: Finding, reach: int = WHOLE, levels: frozenset[CheckLevel] = LEVELS
) -> Witness:
    """Return what an instance told at the beginning of time."""
    return Witness(instance_id, Told(finding, levels, reach), 0.0)


def charge(bad: Finding, tokens: int = 3) -> Charge:
    """Accuse instance `a`."""
    return Charge("a", bad, CheckLevel.L3, tokens)


@pytest.mark.parametrize(
    ("others", "bad", "ruling"),
    [
        ([], Finding.HARD, Attribution.UNKNOWN),
        ([("b", Finding.CLEAN)], Finding.HARD, Attribution.INSTANCE),
        ([("b", Finding.HARD)], Finding.HARD, Attribution.REQUEST),
        ([("b", Finding.SOFT)], Finding.HARD, Attribution.INSTANCE),
        ([("b", Finding.SOFT)], Finding.SOFT, Attribution.REQUEST),
        ([("b", Finding.HARD)], Finding.SOFT, Attribution.REQUEST),
        ([("b", Finding.HARD), ("c", Finding.CLEAN)], Finding.HARD, Attribution.INSTANCE),
        ([("b", Finding.HARD), ("b", Finding.SOFT)], Finding.HARD, Attribution.REQUEST),
        ([("b", Finding.HARD), ("b", Finding.CLEAN)], Finding.HARD, Attribution.INSTANCE),
        ([("a", Finding.CLEAN)], Finding.HARD, Attribution.UNKNOWN),
    ],
)
def test_rulings(others: list[tuple[str, Finding]], bad: Finding, ruling: Attribution) -> None:
    """The accused is no witness; one good answer beats any number of bad ones."""
    docket = Docket()
    for instance_id, finding in others:
        docket.hear("k", witness(instance_id, finding))
    assert docket.rule("k", charge(bad), 1.0) is ruling


def test_old_and_short_findings_tell_nothing() -> None:
    """A clean beginning does not clear what goes wrong later."""
    docket = Docket(memory_s=60)
    docket.hear("k", witness("b", Finding.CLEAN, reach=10))
    assert docket.rule("k", charge(Finding.SOFT, 10), 1.0) is Attribution.INSTANCE
    assert docket.rule("k", charge(Finding.SOFT, 11), 1.0) is Attribution.UNKNOWN
    assert docket.rule("k", charge(Finding.SOFT, 10), 61.0) is Attribution.UNKNOWN


def test_a_gate_that_did_not_look_clears_nobody() -> None:
    """An answer without log probabilities says nothing about NaN."""
    docket = Docket()
    docket.hear("k", witness("b", Finding.CLEAN, levels=frozenset({CheckLevel.L1})))
    assert docket.rule("k", charge(Finding.HARD), 1.0) is Attribution.UNKNOWN


def test_memory_is_bounded() -> None:
    """The oldest request goes first."""
    docket = Docket()
    for number in range(MOST_REQUESTS + 1):
        docket.hear(str(number), witness("b", Finding.CLEAN))
    assert docket.rule("0", charge(Finding.SOFT), 1.0) is Attribution.UNKNOWN
    assert docket.rule("1", charge(Finding.SOFT), 1.0) is Attribution.INSTANCE


def test_the_worst_failure_counts() -> None:
    """Passes and skips are none."""
    assert finding_of([passed(CheckLevel.L1)]) is Finding.CLEAN
    assert finding_of([SOFT]) is Finding.SOFT
    assert finding_of([HARD, SOFT]) is Finding.HARD


def key(path: str = CHAT_PATH, **body: object) -> str:
    """Return the key of a chat request."""
    return request_key(understand(Route.CHAT, json.dumps(body).encode()), path)


def test_copies_of_a_request_have_one_key() -> None:
    """Whatever their length and delivery; how tokens are drawn is part of the request."""
    one = key(messages=["a"], stream=True, max_tokens=5, user="x")
    assert one == key(max_tokens=7, messages=["a"], n=2)
    assert one != key(messages=["b"])
    assert one != key(messages=["a"], temperature=2)
    assert one != key("/invocations", messages=["a"])
    assert len(key(messages=["\ud800"])) == 32


def test_a_second_opinion_is_short_and_not_streamed() -> None:
    """All that bears on the text stays."""
    raw = b'{"prompt":"a","stream":true,"n":3,"min_tokens":9,"max_tokens":500,"temperature":0}'
    asked = understand(Route.COMPLETIONS, raw)
    assert json.loads(bounded_copy(asked, 4) or b"") == {
        "prompt": "a",
        "temperature": 0,
        "max_tokens": 12,
    }
    response = understand(Route.RESPONSES, b'{"input":"a"}')
    assert json.loads(bounded_copy(response, 0) or b"") == {"input": "a", "max_output_tokens": 16}
    newer = understand(Route.CHAT, b'{"messages":[],"max_completion_tokens":3}')
    assert json.loads(bounded_copy(newer, 40) or b"")["max_completion_tokens"] == 3
    assert bounded_copy(understand(Route.CHAT, b'{"messages":["\\ud800"]}'), 1) is None


@given(st.integers(0, 10**5), st.none() | st.integers(-5, 10**5))
def test_the_bound_covers_what_was_seen(tokens: int, own: int | None) -> None:
    """But never more than the client asked for."""
    bound = bounded_length({"max_tokens": own}, tokens)
    if own is not None and own > 0:
        assert bound <= own
    else:
        assert bound > tokens


def test_tries_have_a_budget() -> None:
    """At once, and in a minute."""
    budget = TryBudget(2, 3)
    assert [budget.take(0.0) for _ in range(3)] == [True, True, False]
    budget.give_back()
    assert [budget.take(1.0), budget.take(1.0)] == [True, False]
    budget.give_back()
    assert not budget.take(59.0)
    assert budget.take(61.0)


def test_precedents_are_many_recent_and_of_one_mind() -> None:
    """Copies of one request are one precedent, whoever else was accused of it."""
    kind = Kind(Life("a", 1, None, numbered=True), CheckLevel.L3, Finding.HARD)
    other = replace(kind, life=Life("b", 1, None, numbered=True))
    known = Precedents()
    for number in range(FEWEST_PRECEDENTS - 1):
        known.add(Precedent(str(number), other, Attribution.REQUEST, 0.0))
    known.add(Precedent("0", kind, Attribution.REQUEST, 0.0))
    assert known.rule(kind, 1.0) is Attribution.UNKNOWN
    known.add(Precedent("one more", other, Attribution.REQUEST, 0.0))
    known.add(Precedent("theirs", other, Attribution.INSTANCE, 0.0))
    assert known.rule(kind, 1.0) is Attribution.REQUEST
    assert known.rule(other, 1.0) is Attribution.UNKNOWN
    assert known.rule(kind, 61.0) is Attribution.UNKNOWN
    assert known.rule(replace(kind, level=CheckLevel.L1), 1.0) is Attribution.UNKNOWN
