"""JSON and tool calls, field by field."""

from typing import Any

import pytest

from gatemesh_shadow.fields import Difference, call_differences, differences, parsed, same_text


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ({"a": 19.9}, {"a": 19.90}, []),
        ({"a": 1}, {"a": "1"}, []),
        ({"a": True}, {"a": "true"}, []),
        ({"a": True}, {"a": False}, [Difference("a", "value")]),
        ({"a": 1}, {"a": 2}, [Difference("a", "value")]),
        ({"a": 1, "b": None}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"a": 1}, [Difference("b", "missing")]),
        ({"a": [1, 2]}, {"a": [2, 1]}, []),
        ({"a": [1, 2]}, {"a": [1]}, [Difference("a", "length")]),
        ({"a": [1, 2]}, {"a": [1, 3]}, [Difference("a[1]", "value")]),
        ({"a": {"b": "Oslo "}}, {"a": {"b": "oslo"}}, []),
        ({"a": "x"}, {"a": [1]}, [Difference("a", "type")]),
        ({"a": 0}, {"a": False}, []),
    ],
)
def test_differences(first: Any, second: Any, found: list[Difference]) -> None:
    """Order, case, writing of numbers and empty fields never count."""
    assert differences(first, second) == found


def test_prose_fields() -> None:
    """A reason is worded differently by two healthy answers; another topic is another value."""
    one = "The customer asked for a refund within the allowed time and sent the receipt."
    other = "Refund requested in time, receipt attached by the customer."
    assert same_text(one, other)
    assert not same_text(one, "Bananas ripen faster in a paper bag near warm ovens today.")
    assert same_text("ok for refund", "refund granted", is_prose=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [('{"a": 1}', {"a": 1}), ("Sure:\n```json\n[1]\n```", [1]), ("3", None), ("{broken", None)],
)
def test_parsed(text: str, value: Any) -> None:
    """Bare or fenced; a scalar is no JSON answer."""
    assert parsed(text) == value


def test_calls() -> None:
    """Arguments as text or parsed."""
    one = [{"function": {"name": "f", "arguments": '{"x": 1}'}}]
    assert call_differences(one, [{"name": "f", "arguments": {"x": 1}}], names_only=False) == []
    assert call_differences(one, [], names_only=True) == [Difference("tool_calls", "length")]
