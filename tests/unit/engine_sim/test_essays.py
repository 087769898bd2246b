"""Long answers."""

import itertools

import pytest

from gatemesh_engine_sim.essays import essay, paragraphs, prose, wanted_words

QUESTION = "Write 900 words about the sea."


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (QUESTION, 900),
        ("Tell me about it, length 175.", 175),
        ("In 20000 words, please.", 20_000),
        ("Write 9 words.", 0),
        ("Words?", 0),
    ],
)
def test_number_of_words(question: str, words: int) -> None:
    """Two to five digits before the word."""
    assert wanted_words(question) == words


def test_length_and_repetition() -> None:
    """As long as ordered, by whole paragraphs, and the same each time."""
    parts = list(essay(QUESTION, 900))
    assert 900 <= len("".join(parts).split()) < 1_200
    assert parts == list(essay(QUESTION, 900))
    assert parts[1].startswith("\n\n")


def test_questions_begin_in_different_places() -> None:
    """Not every essay is the same one."""
    first = {next(essay(f"Write 100 words about {number}.", 100)) for number in range(60)}
    assert len(first) > 8


def test_only_sentences() -> None:
    """Code and headings are left out, each paragraph comes once."""
    assert list(prose(["Heading", "x = 1\n" * 40, "Blanks are joined.\n" * 6])) == [
        " ".join(["Blanks are joined."] * 6)
    ]
    known = paragraphs()
    assert len(known) == len(set(known)) > 200
    assert all(len(part) < 3_000 for part in itertools.islice(known, 50))
