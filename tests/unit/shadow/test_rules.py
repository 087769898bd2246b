"""The rules' tables, and each rule where it must keep silent."""

import pytest
from tests.unit.shadow.pairs import ALIKE, DIFFERENT, Example

from gatemesh_common.messages import Reason
from gatemesh_shadow.pair import Pair
from gatemesh_shadow.rules import (
    FACT_RULES,
    GREEDY_RULES,
    SAMPLED_RULES,
    TOPIC_RULES,
    first_finding,
)


def pair_of(example: Example) -> Pair:
    """The pair of an example."""
    request = {"prompt": example.question, "temperature": example.temperature}
    return Pair(request, example.first, example.second)


def test_greedy_rules_are_all_rules() -> None:
    """No rule is forgotten or run twice."""
    assert sorted(rule.__name__ for rule in GREEDY_RULES) == sorted(
        rule.__name__ for rule in (*TOPIC_RULES, *FACT_RULES)
    )


@pytest.mark.parametrize("rule", GREEDY_RULES, ids=lambda rule: rule.__name__)
def test_each_rule_finds_something(rule: object) -> None:
    """Of the examples; a rule that never speaks is dead."""
    pairs = [pair_of(one) for one in DIFFERENT if not one.temperature]
    assert any(callable(rule) and rule(pair) for pair in pairs)


@pytest.mark.parametrize("rule", GREEDY_RULES, ids=lambda rule: rule.__name__)
def test_each_rule_is_silent_about_good_answers(rule: object) -> None:
    """None of them speaks for another rule's sake."""
    for example in ALIKE:
        if not example.temperature:
            assert callable(rule)
            assert rule(pair_of(example)) is None, example.name


def test_drawn_answers_have_few_rules() -> None:
    """Only short answers to closed questions must have the same facts."""
    closed = Pair({"prompt": "What is 2 + 3?"}, "6", "5")
    assert first_finding(SAMPLED_RULES, closed) == (Reason.FACTS_DIFFER, "number", 1.0)
    opened = Pair({"prompt": "Pick a number."}, "6", "5")
    assert first_finding(SAMPLED_RULES, opened) is None


def test_a_near_meaning_rules_out_another_topic() -> None:
    """Where a cosine is known, it has the last word on topics."""
    example = next(one for one in DIFFERENT if one.name == "other-customer")
    request = {"prompt": example.question, "temperature": 0}
    pair = Pair(request, example.first, example.second, cosine=0.8)
    assert first_finding(TOPIC_RULES, pair) is None
