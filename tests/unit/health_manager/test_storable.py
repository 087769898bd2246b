"""What Postgres cannot hold is replaced, and nothing else."""

import json

import pytest

from gatemesh_health_manager.storable import storable, storable_text, storable_words


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("plain", "plain"),
        ("a\x00b", "a\ufffdb"),
        ("\ud800", "\ufffd"),
        ({"\x00": ["\x00", 1, None, True]}, {"\ufffd": ["\ufffd", 1, None, True]}),
        (float("nan"), "nan"),
        (1.5, 1.5),
    ],
)
def test_what_postgres_cannot_hold_is_replaced(value: object, stored: object) -> None:
    """Everything else stays as it is."""
    assert storable(value) == stored


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"rule": "run", "length": 41, "nested": [1.5, None, {"a": True}]},
        {"a\x00b": "c\x00d"},
        {"half": "\ud800", "whole": "\U0001f600", "word": "\\u0000"},
        {"score": float("nan"), "most": float("inf"), "\udfff": ["\x00"]},
    ],
)
def test_a_text_holds_what_can_be_stored(value: object) -> None:
    """Whichever way is taken, the quick one or the thorough one."""
    assert json.loads(storable_text(value)) == storable(value)


@pytest.mark.parametrize(
    "words", [("a", None, "b"), ("a\x00", None, "\ud800"), ("\u4f60", "", None)]
)
def test_words_are_looked_at_together(words: tuple[str | None, ...]) -> None:
    """And replaced one by one."""
    assert list(storable_words(words)) == [storable(word) for word in words]
