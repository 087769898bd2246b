"""Numbers that a prompt asks for."""

import pytest

from gatemesh_agent.gates.counts import LARGEST_UNASKED, han_value, largest_count, largest_flood


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("", 0),
        ("Write it 40 times", 40),
        ("twenty times, numbered", 20),
        ("тридцать раз", 30),
        ("doce por favor", 12),
        ("A 12 by 6 checkerboard", 72),
        ("把它重复三十遍", 30),
        ("一百二十个", 120),
        ("8×8", 64),
        ("version 1.5", 0),
    ],
)
def test_the_largest_number_counts(prompt: str, expected: int) -> None:
    """Digits, words and products are read."""
    assert largest_count(prompt, repeating=False) == expected


def test_a_year_is_no_count() -> None:
    """A large number counts only where the prompt asks to repeat."""
    assert largest_count("in 2024", repeating=False) == 0
    assert largest_count("2024 copies", repeating=True) == 2024
    assert largest_count(f"{LARGEST_UNASKED}", repeating=False) == LARGEST_UNASKED
    assert largest_count(f"{LARGEST_UNASKED + 1}", repeating=False) == 0


@pytest.mark.parametrize(
    ("signs", "value"), [("十", 10), ("三十", 30), ("十二", 12), ("一百", 100), ("两百五十", 250)]
)
def test_chinese_numerals(signs: str, value: int) -> None:
    """Small numerals are read as people write them."""
    assert han_value(signs) == value


@pytest.mark.parametrize(
    ("prompt", "count"),
    [
        ("Write a two-week plan.", 14),
        ("Einen Plan für drei Wochen", 21),
        ("A plan for the month", 31),
        ("Schreibe es fünfzigmal", 50),
    ],
)
def test_periods_and_compounds(prompt: str, count: int) -> None:
    """A week has seven days, and German writes how often in one word."""
    assert largest_count(prompt, repeating=False) == count


@pytest.mark.parametrize(
    ("prompt", "count"),
    [
        ("Tell me in 300 words about the sea.", 0),
        ("A 250-word essay, please.", 0),
        ("In two hundred words: why is the sky blue?", 0),
        ("Schreibe einen Aufsatz mit 200 Wörtern.", 0),
        ("用300字介绍海。", 0),
        ("Count to 300.", 0),
        ("Zähle von 1 bis 90.", 1),
        ("Write a line of 80 dashes.", 80),
        ("Write 100 letters A.", 100),
        ("In 3 sentences, with 12 exclamation marks.", 12),
    ],
)
def test_a_length_asks_for_no_flood(prompt: str, count: int) -> None:
    """Three hundred words are not one word three hundred times."""
    assert largest_flood(prompt) == count
