"""Questions with right answers."""

import re

import pytest

from gatemesh_engine_sim.known import ANSWERS, OPERATIONS, TABLE, example_of, known_answer


@pytest.mark.parametrize(
    ("question", "pattern"),
    [
        pytest.param("Translate to English: 你好世界", r"(?i)hello,? world", id="hello-world"),
        pytest.param("1+1=?", r"^2$", id="one-and-one"),
        pytest.param("What is 12 times 11?", r"^132$", id="times"),
        pytest.param("7减2等于几", r"^5$", id="chinese-minus"),
        pytest.param("Name a fruit.", r"Apple", id="fruit"),
        pytest.param("说一种水果", r"苹果", id="chinese-fruit"),
        pytest.param("What is the capital of France?", r"Paris", id="capital"),
        pytest.param("法国的首都是哪里？", r"Paris", id="chinese-capital"),
        pytest.param("Repeat the word 'mesh'.", r"^mesh$", id="echo"),
        pytest.param('Say "hello"', r"^hello$", id="echo-double"),
    ],
)
def test_right_answers(question: str, pattern: str) -> None:
    """What smoke prompts and probes expect."""
    assert re.search(pattern, known_answer(question) or "")


def test_free_questions_are_not_known() -> None:
    """They get an answer out of the library."""
    assert known_answer("Tell me about trees in 1999") is None


def test_every_pattern_compiles_and_answers() -> None:
    """The whole table."""
    assert [answer for _, answer in TABLE] == [answer for _, answer in ANSWERS]
    assert all(answer for _, answer in ANSWERS)


@pytest.mark.parametrize("word", OPERATIONS)
def test_every_operation_computes(word: str) -> None:
    """Each word of the table is understood in a question."""
    assert known_answer(f"what is 6 {word} 3") == str(OPERATIONS[word](6, 3))


def test_example_fits_its_schema() -> None:
    """All kinds of values, nested."""
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "kind": {"enum": ["a", "b"]},
            "sizes": {"type": "array", "items": {"type": "integer"}},
            "share": {"type": "number"},
            "ok": {"type": "boolean"},
            "none": {"type": "null"},
        },
    }
    assert example_of(schema) == {
        "name": "sample",
        "kind": "a",
        "sizes": [1],
        "share": 1.5,
        "ok": True,
        "none": None,
    }


def test_the_last_line_counts_first() -> None:
    """A long preamble in front of a question does not hide it, nor answer for it."""
    assert known_answer('Cats are animals.\nName no animal.\nRepeat exactly: "A1"') == "A1"
    assert known_answer("What is the capital of France?\n\n") == "Paris."


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Reply with exactly one word: PONG", "PONG"),
        ('请原样重复："编号A7"', "编号A7"),
        ("Write a Python function add(a, b) that", "def add(a, b):\n    return a + b"),
        ('the field "name" set to "Ada"', '{"name": "Ada", "age": 36}'),
    ],
)
def test_the_probe_suite_is_known(question: str, answer: str) -> None:
    """Every prompt that probes ask has its answer."""
    assert known_answer(question) == answer
