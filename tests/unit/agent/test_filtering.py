"""What is flagged in shield mode is told as other vendors tell it."""

import json
from typing import Any

import pytest

from gatemesh_agent.answers import shape_of
from gatemesh_agent.dialects import READERS
from gatemesh_agent.filtering import answer_flagged, request_flagged
from gatemesh_agent.requests import Route

SECRET = "what nobody is to read"
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": SECRET}}
ANSWERS: dict[Route, dict[str, Any]] = {
    Route.CHAT: {
        "id": "1",
        "choices": [
            {
                "index": 0,
                "message": {"content": SECRET, "reasoning": SECRET, "tool_calls": [CALL]},
                "logprobs": {"content": [{"token": SECRET, "logprob": -1}]},
                "finish_reason": "stop",
            }
        ],
        "usage": {"total_tokens": 3},
    },
    Route.COMPLETIONS: {
        "choices": [{"index": 0, "text": SECRET, "logprobs": None, "finish_reason": "length"}]
    },
    Route.RESPONSES: {
        "output": [{"type": "message", "content": [{"type": "output_text", "text": SECRET}]}],
        "status": "completed",
    },
    Route.MESSAGES: {
        "type": "message",
        "content": [{"type": "text", "text": SECRET}],
        "stop_reason": "stop_sequence",
        "stop_sequence": SECRET,
    },
}


@pytest.mark.parametrize("route", list(Route))
def test_a_flagged_answer_says_nothing_and_why(route: Route) -> None:
    """The finish reason is the one that clients of content filters know."""
    emptied = answer_flagged(route, json.dumps(ANSWERS[route]).encode())
    assert SECRET.encode() not in emptied
    [part] = READERS[route](json.loads(emptied), None)
    assert part.finish_reason == "content_filter"
    assert part.reading.text == ""


def test_a_flagged_request_is_the_clients_to_change() -> None:
    """Code and type are those that client libraries look at."""
    body = request_flagged("moderation")
    assert json.loads(body)["error"]["code"] == "content_filter"
    assert "'moderation'" in json.loads(body)["error"]["message"]
    shaped = json.loads(shape_of(Route.MESSAGES)(body))
    assert shaped["error"]["type"] == "invalid_request_error"
