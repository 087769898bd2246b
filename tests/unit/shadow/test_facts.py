"""What an answer claims."""

import pytest

from gatemesh_shadow.facts import facts_of, opposed


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("5 km", {("length", 5000.0)}),
        ("5000 metres", {("length", 5000.0)}),
        ("1.5 hours", {("time", 5400.0)}),
        ("90 minutes", {("time", 5400.0)}),
        ("1,200 people", {("", 1200.0)}),
        ("1,25 kg", {("mass", 1.25)}),
        ("$45.00", {("usd", 45.0)}),
        ("-7", {("", -7.0)}),
        ("25%", {("share", 0.25)}),
        ("twelve eggs", {("", 12.0)}),
        ("one egg", set()),
        ("十二个月", {("", 12.0)}),
        ("三百五十公里", {("length", 350_000.0)}),
        ("一些人", set()),
        ("1. Red\n2. Blue", set()),
    ],
)
def test_numbers(text: str, numbers: set[tuple[str, float]]) -> None:
    """In digits and words, with units in their base unit; articles and list marks are none."""
    assert set(facts_of(text).numbers) == numbers


def test_identifiers() -> None:
    """Codes and dates, not quantities."""
    facts = facts_of("Use ZX-90-4471-KQ by 2024-03-17 and drive 15km.")
    assert facts.identifiers == {"zx-90-4471-kq", "2024-03-17"}


def test_names() -> None:
    """Capital letters within a sentence, not at its start."""
    assert facts_of("Later she met Ada Lovelace. Nobody knew.").names == {"ada", "lovelace"}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("It is not here.", 1),
        ("It doesn't matter", 1),
        ("不可以", 1),
        ("非常好", 0),
        ("不仅如此", 0),
    ],
)
def test_negations(text: str, count: int) -> None:
    """Also contracted and Chinese ones; not words that only look like one."""
    assert facts_of(text).negations == count


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        ("Yes.", "No.", "yes"),
        ("It increases.", "It decreases.", "increases"),
        ("yes and no", "no", None),
        ("可以。", "不可以。", "可以"),
        ("正面", "负面", "正面"),
        ("good", "bad", None),
    ],
)
def test_opposites(first: str, second: str, word: str | None) -> None:
    """One word for its opposite; a word inside a longer one does not count."""
    assert opposed(facts_of(first), facts_of(second)) == word
