"""What comparing needs to know of a request and its answers."""

import pytest

from gatemesh_shadow.pair import Pair, length_of, prompt_of, question_of

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "How many legs has an ant?"}]},
]


def test_prompt_and_question() -> None:
    """All texts, and the last one of the user."""
    assert prompt_of({"messages": MESSAGES}) == "Be brief.\nHow many legs has an ant?"
    assert question_of({"messages": MESSAGES}) == "How many legs has an ant?"
    assert question_of({"prompt": "1 + 1 ="}) == prompt_of({"prompt": "1 + 1 ="}) == "1 + 1 ="
    assert question_of({"prompt": [1, 2]}) == ""


@pytest.mark.parametrize(("request_", "greedy"), [({"temperature": 0}, True), ({}, False)])
def test_greedy_is_temperature_zero(request_: dict[str, int], *, greedy: bool) -> None:
    """The default temperature is 1."""
    assert Pair(request_, "a", "b").greedy is greedy


def test_short_and_closed() -> None:
    """At the limit of words and past it."""
    short = Pair({"messages": MESSAGES}, "x " * 12, "Six")
    assert short.is_short
    assert short.is_closed
    assert not Pair({}, "x " * 13, "Six").is_short
    assert not Pair({"prompt": "What is a good name for a cat?"}, "a", "b").is_closed


def test_length_of_ideographs() -> None:
    """Two make a word."""
    assert (length_of("你好世界"), length_of("two words")) == (2, 2)
