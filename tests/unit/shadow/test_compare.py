"""Which differences between two answers count."""

from typing import Any

import pytest
from tests.unit.shadow.pairs import ALIKE, DIFFERENT, Example

from gatemesh_common.messages import Outcome, Reason
from gatemesh_shadow.compare import NOTED_CHARS, judge_pair, needs_cosine
from gatemesh_shadow.pair import PairLimits

FAILED, PASSED, SKIPPED = Outcome.FAILED, Outcome.PASSED, Outcome.SKIPPED
LONG = "A well kept garden needs water, light, patience and somebody who pulls the weeds each week."
OTHER = "Whoever wants roses has to water them, give them sun, wait, and weed the beds all summer."


def request_of(question: str, temperature: float = 0.0, **more: Any) -> dict[str, Any]:
    """A chat request."""
    messages = [{"role": "user", "content": question}]
    return {"messages": messages, "temperature": temperature, **more}


def judged(example: Example, **more: Any) -> Any:
    """The judgement of one example, without a model unless given."""
    request = request_of(example.question, example.temperature)
    return judge_pair(request, example.first, example.second, **more)


@pytest.mark.parametrize("example", DIFFERENT, ids=lambda one: one.name)
def test_a_wrong_answer_fails(example: Example) -> None:
    """Without any model."""
    judgement = judged(example)
    assert judgement.outcome is FAILED
    assert judgement.reason in {Reason.FACTS_DIFFER, Reason.ANSWERS_DIFFER}
    assert judgement.details["rule"]


@pytest.mark.parametrize("example", ALIKE, ids=lambda one: one.name)
def test_another_good_answer_does_not_fail(example: Example) -> None:
    """It passes, or it is skipped with a reason."""
    judgement = judged(example)
    assert judgement.outcome is not FAILED
    assert judgement.outcome is PASSED or judgement.details["why"]


@pytest.mark.parametrize("example", DIFFERENT, ids=lambda one: one.name)
def test_an_answer_agrees_with_itself(example: Example) -> None:
    """Whatever it says."""
    request = request_of(example.question)
    assert judge_pair(request, example.second, example.second).outcome is PASSED


@pytest.mark.parametrize(
    ("gap", "outcome", "reason"),
    [
        (0.25, SKIPPED, Reason.NOT_COMPARABLE),
        (0.5, SKIPPED, Reason.NOT_COMPARABLE),
        (0.51, FAILED, Reason.ANSWERS_DIFFER),
    ],
)
def test_near_ties_are_no_difference(gap: float, outcome: Outcome, reason: Reason) -> None:
    """At the limit and past it; after a near-tie the meaning is compared."""
    judgement = judge_pair(request_of("Tell me about roses."), LONG, OTHER, split_gap_nats=gap)
    assert (judgement.outcome, judgement.reason) == (outcome, reason)


def test_a_near_tie_excuses_other_facts() -> None:
    """Two candidates of equal weight: either number is the healthy model's answer."""
    request = request_of("What is 17 + 25?")
    assert judge_pair(request, "It is 43.", "It is 42.", split_gap_nats=0.1).outcome is SKIPPED
    judgement = judge_pair(request, "It is 43.", "It is 42.", split_gap_nats=3.0)
    assert judgement.reason is Reason.FACTS_DIFFER


@pytest.mark.parametrize(
    ("temperature", "cosine", "outcome"),
    [(0.0, 0.56, PASSED), (0.0, 0.54, FAILED), (0.7, 0.06, PASSED), (0.7, 0.04, FAILED)],
)
def test_cosine_limits(temperature: float, cosine: float, outcome: Outcome) -> None:
    """Drawn answers may be further apart."""
    request = request_of("Tell me about roses.", temperature)
    assert judge_pair(request, LONG, OTHER, cosine=cosine).outcome is outcome


def test_limits_can_be_calibrated() -> None:
    """Another model has other cosines."""
    limits = PairLimits(cosine_greedy=0.9)
    judgement = judge_pair(
        request_of("Tell me about roses."), LONG, OTHER, cosine=0.8, limits=limits
    )
    assert (judgement.outcome, judgement.threshold) == (FAILED, 0.9)


def test_an_empty_second_answer_proves_nothing() -> None:
    """The healthy instance said nothing."""
    judgement = judge_pair(request_of("Hi"), LONG, " ")
    assert (judgement.outcome, judgement.reason) == (SKIPPED, Reason.NOT_COMPARABLE)


@pytest.mark.parametrize(
    ("first", "second", "temperature", "outcome"),
    [
        ('{"a": 1, "b": "x"}', '{"b": "x", "a": 1.0}', 0.0, PASSED),
        ('```json\n{"a": 1}\n```', '{"a": 1}', 0.0, PASSED),
        ('{"a": 2}', '{"a": 1}', 0.0, FAILED),
        ('{"a": 2}', '{"a": 1}', 0.8, PASSED),
        ('{"b": 1}', '{"a": 1}', 0.8, FAILED),
        ("not JSON at all", '{"a": 1}', 0.0, FAILED),
    ],
)
def test_json(first: str, second: str, temperature: float, outcome: Outcome) -> None:
    """Field by field; drawn values may differ, fields may not."""
    request = request_of("Extract.", temperature, response_format={"type": "json_object"})
    assert judge_pair(request, first, second).outcome is outcome


def call(name: str, arguments: str) -> dict[str, Any]:
    """A tool call as it is sent."""
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("first", "second", "temperature", "outcome"),
    [
        (call("get", '{"city": "Oslo"}'), call("get", '{"city":"oslo"}'), 0.0, PASSED),
        (call("get", '{"city": "Oslo"}'), call("get", '{"city": "Rome"}'), 0.0, FAILED),
        (call("get", '{"city": "Oslo"}'), call("get", '{"city": "Rome"}'), 1.0, PASSED),
        (call("get", "{}"), call("put", "{}"), 1.0, FAILED),
        (call("get", '{"city": '), call("get", '{"city": "Oslo"}'), 0.0, FAILED),
    ],
)
def test_tool_calls(
    first: dict[str, Any], second: dict[str, Any], temperature: float, outcome: Outcome
) -> None:
    """Names always, arguments at temperature 0."""
    judgement = judge_pair(
        request_of("Weather?", temperature), "", "", primary_calls=[first], shadow_calls=[second]
    )
    assert judgement.outcome is outcome
    assert judgement.details["measure"] == "tool_calls"


def test_a_missing_call_fails() -> None:
    """Text instead of the call that a healthy instance makes."""
    judgement = judge_pair(request_of("Weather?"), "Sunny.", "", shadow_calls=[call("get", "{}")])
    assert judgement.reason is Reason.FIELDS_DIFFER


def test_no_text_in_details() -> None:
    """What a verdict carries names fields and rules, never content."""
    judgement = judge_pair(request_of("x"), '{"secret": "alpha"}', '{"secret": "omega"}')
    assert "alpha" not in str(judgement.details)
    assert judgement.details["fields"] == ["secret: value"]


def test_only_prose_needs_a_model() -> None:
    """Embedding costs time."""
    assert needs_cosine(request_of("x"), LONG, OTHER)
    assert not needs_cosine(request_of("x"), LONG, LONG + " ")
    assert not needs_cosine(request_of("x"), "42", "43")
    assert not needs_cosine(request_of("x"), '{"a": 1}', '{"a": 2}')


def test_parts_of_content_are_read() -> None:
    """Messages may hold lists of parts; a prompt may be plain."""
    parts = [{"type": "text", "text": "What is 1 + 1?"}]
    request = {"messages": [{"role": "user", "content": parts}], "temperature": 0}
    assert judge_pair(request, "3", "2").outcome is FAILED
    assert judge_pair({"prompt": "1 + 1 =", "temperature": 0}, "3", "2").outcome is FAILED
    assert judge_pair({"input": "What is 1 + 1?", "temperature": 0}, "3", "2").outcome is FAILED


def test_the_names_of_fields_are_cut_short() -> None:
    """Keys are the answer's own: a broken one may hold a whole text."""
    judgement = judge_pair({}, '{"' + "x" * 5000 + '": 1}', "{}")
    assert judgement.details["fields"] == ["x" * NOTED_CHARS + ": missing"]
