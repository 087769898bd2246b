"""Other routes ask for the same things in other words."""

from typing import Any

import pytest

from gatemesh_engine_sim.translations import (
    LOGPROBS_INCLUDED,
    format_of,
    of_message,
    of_response,
    unchanged,
)

TURNS = [{"role": "user", "content": "Hi"}]
SCHEMA = {"type": "json_schema", "schema": {"type": "object"}}


@pytest.mark.parametrize("given", ["Hi", TURNS])
def test_a_response_request_becomes_a_conversation(given: Any) -> None:
    """Instructions come first."""
    asked = of_response({"input": given, "instructions": "Be kind.", "max_output_tokens": 5})
    assert asked["messages"] == [{"role": "system", "content": "Be kind."}, *TURNS]
    assert asked["max_tokens"] == 5
    assert "logprobs" not in asked


def test_log_probabilities_are_asked_by_inclusion() -> None:
    """Their count alone asks for none."""
    assert "logprobs" not in of_response({"input": "Hi", "top_logprobs": 5})
    asked = of_response({"input": "Hi", "include": [LOGPROBS_INCLUDED], "top_logprobs": 5})
    assert (asked["logprobs"], asked["top_logprobs"]) == (True, 5)


def test_a_message_request_becomes_a_conversation() -> None:
    """The system's words, stop sequences and the wanted format."""
    asked = of_message(
        {
            "system": "Be kind.",
            "messages": TURNS,
            "stop_sequences": ["."],
            "max_tokens": 5,
            "output_config": {"format": SCHEMA},
        }
    )
    assert asked["messages"] == [{"role": "system", "content": "Be kind."}, *TURNS]
    assert (asked["stop"], asked["max_tokens"]) == (["."], 5)
    assert asked["response_format"]["json_schema"] == {"schema": {"type": "object"}}


def test_nothing_wanted_is_nothing() -> None:
    """And the engine's own routes are taken as they are."""
    assert format_of(None) == {}
    assert unchanged({"a": 1}) == {"a": 1}
