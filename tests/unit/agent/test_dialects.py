"""Every guarded route has a reader of its own."""

from typing import Any

import pytest

from gatemesh_agent.dialects import READERS
from gatemesh_agent.requests import Route

SAID: dict[Route, dict[str, Any]] = {
    Route.CHAT: {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]},
    Route.COMPLETIONS: {"choices": [{"index": 0, "text": "Hi", "finish_reason": "stop"}]},
    Route.RESPONSES: {
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}],
        "status": "completed",
    },
    Route.MESSAGES: {
        "type": "message",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
    },
}


@pytest.mark.parametrize("route", list(Route))
def test_all_routes_say_the_same_in_the_end(route: Route) -> None:
    """The gates see no difference."""
    [part] = READERS[route](SAID[route], None)
    assert (part.choice, part.reading.text, part.finish_reason) == (0, "Hi", "stop")


@pytest.mark.parametrize("route", list(Route))
def test_an_error_says_nothing(route: Route) -> None:
    """It is forwarded, and nothing is concluded from it."""
    assert list(READERS[route]({"error": {"message": "x"}, "type": "error"}, None)) == []


@pytest.mark.parametrize("index", ["0", -1, None, 1.5])
def test_a_choice_without_a_place_is_left_out(index: object) -> None:
    """A place is a number from 0."""
    fields: dict[str, Any] = {"choices": [{"index": index, "text": "Hi"}]}
    assert list(READERS[Route.CHAT](fields, None)) == []
