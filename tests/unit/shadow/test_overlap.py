"""What two texts share."""

from difflib import SequenceMatcher
from typing import Any

import pytest

from gatemesh_shadow import overlap
from gatemesh_shadow.facts import facts_of
from gatemesh_shadow.overlap import (
    MOST_SENTENCES,
    aligned,
    common_prefix,
    is_code,
    normalised,
    script_of,
    sentences,
    shared,
    stems,
    words_of,
)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Hello", "latin"),
        ("你好世界", "han"),
        ("これは本です", "kana"),
        ("Привет", "cyrillic"),
        ("안녕", "hangul"),
        ("12 + 3", "none"),
    ],
)
def test_script(text: str, script: str) -> None:
    """The one that most letters belong to."""
    assert script_of(text) == script


def test_normalised() -> None:
    """Case, width, marks and markup do not matter; a sign does."""
    assert normalised("**Paris**.") == normalised("paris")
    assert normalised("4２") == "42"
    assert normalised("-7") != normalised("7")


def test_words_and_stems() -> None:
    """Ideographs one by one as words, in pairs as stems; function words are no content."""
    assert words_of("It's 3.5 你好") == ["it's", "3.5", "你", "好"]
    assert stems("the walking dead 你好吗") == ["walki", "dead", "你好", "好吗"]


def test_shared() -> None:
    """A share of distinct words; nothing is in everything."""
    assert shared(["a", "a", "b"], ["a"]) == 0.5
    assert shared([], ["a"]) == 1.0


def test_sentences() -> None:
    """Also Chinese ones and lines."""
    assert sentences("One. Two!\n- three\n你好。世界。") == [
        *("One.", "Two!", "- three", "你好。", "世界。")
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```py\nx = 1\n```", True),
        ("def f():\n    return 1", True),
        ("SELECT a FROM b;", True),
        ("We import goods from Spain.", False),
        ("", False),
    ],
)
def test_code(text: str, *, code: bool) -> None:
    """Fenced or bare."""
    assert is_code(text) is code


def test_aligned_sentences() -> None:
    """Only those that are nearly the same."""
    first = "It was built in 1968. Birds sing."
    second = "It was built in 1986. Nothing else happened that day."
    assert aligned(first, second, 0.7) == [("It was built in 1968.", "It was built in 1986.")]


@pytest.mark.parametrize(
    ("first", "second", "length"),
    [
        ("the cat", "the car", 4),
        ("the cat", "the cat sat", 7),
        ("你好吗", "你好啊", 2),
        ("a", "b", 0),
    ],
)
def test_common_prefix(first: str, second: str, length: int) -> None:
    """Whole words only."""
    assert common_prefix(first, second) == length


def test_many_short_sentences_are_compared_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A loop is no thousand sentences, and of long answers only the first count."""
    looked: list[int] = []

    class Counting(SequenceMatcher[str]):
        """Counts how often two sentences are compared letter by letter."""

        def __init__(self, *args: Any, **options: Any) -> None:
            looked.append(1)
            super().__init__(*args, **options)

    monkeypatch.setattr(overlap, "SequenceMatcher", Counting)
    assert aligned("Yes. No. " * 2000, "Yes. No. " * 2000, 0.7) == [
        ("Yes.", "Yes."),
        ("No.", "No."),
    ]
    varied = " ".join(f"Item {number} is here." for number in range(2000))
    aligned(varied, varied.replace("here", "there"), 0.7)
    assert len(looked) <= MOST_SENTENCES**2 + 2


@pytest.mark.parametrize("flood", ["\n", " ", "\n ", "\t\n"])
def test_a_flood_of_blanks_is_read_in_one_pass(flood: str) -> None:
    """It is what some damaged engines say; read again from each blank it would take hours."""
    text = "a" + flood * 100_000 + "b"
    assert normalised(text) == "a b"
    assert facts_of(text).names == frozenset()
