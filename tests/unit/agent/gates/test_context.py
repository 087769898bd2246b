"""The request is read without trust in its shape."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.context import PROMPT_CHARS, context_of, shortened
from gatemesh_agent.gates.topics import Topic
from gatemesh_common.messages import Decoding

LEAF = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4)
JSON = LEAF | st.lists(LEAF | st.dictionaries(st.just("function"), LEAF), max_size=2)
NAMES = st.sampled_from(
    ["messages", "prompt", "temperature", "max_tokens", "tools", "response_format", "stop"]
)


@given(st.dictionaries(NAMES, JSON, max_size=5))
def test_odd_requests_are_read(request: dict[str, object]) -> None:
    """The engine refuses what is wrong; the gates only look."""
    context_of(request)


def test_messages_of_text_and_of_parts() -> None:
    """All messages are the prompt, whatever their form."""
    parts = [{"type": "text", "text": "two"}, {"type": "image_url"}, {"type": "text", "text": "3"}]
    context = context_of(
        {"messages": [{"role": "system", "content": "one"}, {"role": "user", "content": parts}]}
    )
    assert context.prompt == "one\ntwo\n3"
    assert context.chat


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [("one", "one"), (["one", "two"], "one\ntwo"), ([1, 2], ""), ([[1], [2]], ""), (None, "")],
)
def test_prompts_of_completions(prompt: object, expected: str) -> None:
    """Token ids say nothing to a reader."""
    context = context_of({"prompt": prompt})
    assert context.prompt == expected
    assert not context.chat


@pytest.mark.parametrize(
    ("temperature", "decoding", "wide", "hot"),
    [
        (0, Decoding.GREEDY, False, False),
        (0.94, Decoding.SAMPLED, False, False),
        (0.95, Decoding.SAMPLED, True, False),
        (1.3, Decoding.SAMPLED, True, False),
        (1.31, Decoding.SAMPLED, True, True),
        (None, Decoding.UNKNOWN, True, False),
        ("0", Decoding.UNKNOWN, True, False),
        (True, Decoding.UNKNOWN, True, False),
    ],
)
def test_temperature(temperature: object, decoding: Decoding, wide: bool, hot: bool) -> None:  # noqa: FBT001
    """Odd tokens are judged by how the client wants them drawn."""
    context = context_of({"temperature": temperature})
    assert (context.decoding, context.wide, context.hot) == (decoding, wide, hot)


@pytest.mark.parametrize(
    ("fields", "reshaped"),
    [
        ({}, False),
        ({"repetition_penalty": 1.0, "logit_bias": {}, "presence_penalty": 0}, False),
        ({"repetition_penalty": 1.1}, True),
        ({"presence_penalty": 0.5}, True),
        ({"logit_bias": {"5": -100}}, True),
        ({"response_format": {"type": "json_object"}}, True),
        ({"response_format": {"type": "text"}}, False),
        ({"tool_choice": "required"}, True),
        ({"tool_choice": {"type": "function"}}, True),
        ({"tool_choice": "auto"}, False),
    ],
)
def test_reshaped(fields: dict[str, object], reshaped: bool) -> None:  # noqa: FBT001
    """Penalties and grammars make the engine take other tokens than the likeliest."""
    assert context_of(fields).reshaped is reshaped


def test_tools_and_their_required_arguments() -> None:
    """A call is checked against what was on offer."""
    tools = [
        {"function": {"name": "a", "parameters": {"required": ["x", 3]}}},
        {"function": {"name": "b"}},
        {"type": "web_search"},
    ]
    assert context_of({"tools": tools}).tools == {"a": ("x",), "b": ()}
    assert context_of({"tools": []}).tools is None


def test_json_and_limits() -> None:
    """What the client demanded is known."""
    context = context_of(
        {"response_format": {"type": "json_schema"}, "max_completion_tokens": 5, "stop": ["x"]}
    )
    assert context.demands_json
    assert context.max_tokens == 5
    assert context.stops


def test_a_long_prompt_keeps_both_ends() -> None:
    """The task stands at the start or at the end."""
    short = shortened("begin" + "x" * PROMPT_CHARS * 2 + "finish")
    assert len(short) == PROMPT_CHARS + 1
    assert short.startswith("begin")
    assert short.endswith("finish")


def test_topics() -> None:
    """One of several topics is enough."""
    context = context_of({"prompt": "Explain <|im_end|>"})
    assert context.asks(Topic.DRAWING, Topic.TOKENS)
    assert not context.asks(Topic.DRAWING)


SCHEMA = {"type": "object", "required": ["city"]}


def test_a_response_request_is_read() -> None:
    """Instructions, items with parts, what a tool answered, flat tools and the wanted format."""
    context = context_of(
        {
            "instructions": "Be brief.",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
                {"type": "function_call_output", "call_id": "1", "output": "sunny"},
                {"role": "user", "content": "And now?"},
            ],
            "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}],
            "text": {"format": {"type": "json_schema", "name": "x", "schema": {}}},
            "max_output_tokens": 7,
            "temperature": 0,
        }
    )
    assert context.prompt == "Be brief.\nWeather?\nsunny\nAnd now?"
    assert (context.chat, context.demands_json, context.reshaped) == (True, True, True)
    assert (context.max_tokens, context.tools) == (7, {"weather": ("city",)})
    assert context_of({"input": "Hello"}).prompt == "Hello"


def test_a_messages_request_is_read() -> None:
    """System blocks, tool results with parts, flat tools, stop sequences, a free tool choice."""
    result = {"type": "tool_result", "content": [{"type": "text", "text": "sunny"}]}
    request: dict[str, Any] = {
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": "Weather?"},
            {"role": "user", "content": [result]},
        ],
        "tools": [{"name": "weather", "input_schema": SCHEMA}],
        "tool_choice": {"type": "auto"},
        "stop_sequences": ["."],
        "max_tokens": 9,
    }
    context = context_of(request)
    assert context.prompt == "Be brief.\nWeather?\nsunny"
    assert (context.chat, context.stops, context.reshaped) == (True, True, False)
    assert (context.max_tokens, context.tools) == (9, {"weather": ("city",)})
    assert context_of(request | {"tool_choice": {"type": "any"}}).reshaped
    wanted = {"output_config": {"format": {"type": "json_schema", "schema": {}}}}
    assert context_of(request | wanted).demands_json


@pytest.mark.parametrize("name", ["stop", "stop_sequences", "stop_token_ids"])
def test_an_end_that_the_client_wished_for_is_known(name: str) -> None:
    """In whatever field it does."""
    assert context_of({"prompt": "Hi", name: [13]}).stops
    assert not context_of({"prompt": "Hi", name: []}).stops


def test_a_prompt_of_endless_depth_is_read_to_a_depth() -> None:
    """Nobody ends the agent by nesting lists."""
    deep: Any = "end"
    for _ in range(500):
        deep = [deep]
    assert context_of({"input": deep}).prompt == ""
