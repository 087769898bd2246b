"""JSON and tool calls on demand."""

from collections.abc import Callable

import pytest

from gatemesh_agent.gates.context import RequestContext
from gatemesh_agent.gates.judgement import Judgement
from gatemesh_agent.gates.structure import (
    JSON_CHARS,
    Document,
    bad_calls,
    broken_json,
    written_call,
)
from gatemesh_common.messages import Outcome, Reason

TOOLS = {"search": ("q",)}

Asking = Callable[..., RequestContext]
Judge = Callable[..., Judgement]


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ('{"a": 1}', True),
        (" [] \n", True),
        ('```json\n{"a": 1}\n```', True),
        ('{"a": 1', False),
        ('{"a": 1}}', False),
        ('Here it is: {"a": 1}', False),
        ("[" * 100_000, False),
    ],
)
def test_json(text: str, fine: bool) -> None:  # noqa: FBT001
    """One whole value, in a fence at most."""
    finding = broken_json(text)
    assert (finding is None) is fine
    assert finding is None or finding.reason is Reason.BROKEN_JSON


@pytest.mark.parametrize(
    ("function", "fine"),
    [
        ({"name": "search", "arguments": '{"q": "x"}'}, True),
        ({"name": "search", "arguments": '{"q": "x'}, False),
        ({"name": "search", "arguments": "[]"}, False),
        ({"name": "search", "arguments": "{}"}, False),
        ({"name": "serch", "arguments": '{"q": "x"}'}, False),
        ({"name": "search", "arguments": 7}, False),
        (None, True),
    ],
)
def test_calls(function: object, fine: bool) -> None:  # noqa: FBT001
    """A call names a tool on offer and brings what it requires."""
    finding = bad_calls([{"id": "1", "function": function}], TOOLS)
    assert (finding is None) is fine


def test_calls_without_tools_are_only_parsed() -> None:
    """Tools of a kind that we do not know are left alone."""
    assert bad_calls([{"function": {"name": "x", "arguments": "{}"}}], None) is None


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ('{"name": "search", "arguments": {"q": "x"}}', True),
        ('{"name": "other", "arguments": {}}', False),
        ('{"name": "search"}', False),
        ("{broken", False),
        ("plain", False),
    ],
)
def test_a_call_written_as_text(text: str, call: bool) -> None:  # noqa: FBT001
    """The client got text where it needed a call."""
    assert (written_call(text, TOOLS) is not None) is call


def test_the_document_is_kept_only_where_needed() -> None:
    """Memory stays bounded."""
    plain = Document(RequestContext())
    plain.feed("x")
    assert plain.text is None
    wanted = Document(RequestContext(demands_json=True))
    wanted.feed("[1")
    wanted.feed("]")
    assert wanted.text == "[1]"
    wanted.feed("x" * JSON_CHARS)
    wanted.feed("x" * JSON_CHARS)
    assert wanted.text is None


def test_a_schema_names_its_keys(asking: Asking, judge: Judge) -> None:
    """JSON that lacks a required key is broken, and so is what only Python reads."""
    schema = {"type": "object", "required": ["city", "year"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    context = asking("Extract both.", response_format=form)
    assert context.required_keys == ("city", "year")
    assert judge('{"city": "Rome"}', context).reason is Reason.BROKEN_JSON
    assert judge('{"city": "Rome", "year": NaN}', context).reason is Reason.BROKEN_JSON
    assert judge('{"city": "Rome", "year": 1}', context).outcome is Outcome.PASSED
