"""What clients get for what a plugged-in gate flags in shield mode, as other vendors word it. Pure.

A flagged request is refused with 400 and the code `content_filter`; a flagged answer ends with the
finish reason `content_filter` and holds no text, as with Azure's and OpenAI's content filters.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from gatemesh_agent.requests import Route
from gatemesh_agent.stripping import as_object, choices_of, loads

CONTENT_FILTER = "content_filter"


def request_flagged(gate: str) -> bytes:
    """Say that a request was refused before any engine saw it."""
    message = f"the request was refused by the content gate {gate!r}; change it and send it again"
    error = {
        "message": message,
        "type": "invalid_request_error",
        "param": None,
        "code": CONTENT_FILTER,
    }
    return orjson.dumps({"error": error})


def answer_flagged(route: Route, body: bytes) -> bytes:
    """Return a whole answer without what it said.

    Raises:
        ValueError: it is no JSON object.
    """
    fields = as_object(loads(body))
    EMPTIED[route](fields)
    return orjson.dumps(fields)


def empty_choices(fields: dict[str, Any]) -> None:
    """Take text, calls and figures out of every choice of a chat completion or completion."""
    for choice in choices_of(fields):
        choice["finish_reason"] = CONTENT_FILTER
        choice.update({name: None for name in ("logprobs", "token_ids") if name in choice})
        if "text" in choice:
            choice["text"] = ""
        if "message" in choice:
            choice["message"] = {"role": "assistant", "content": "", "refusal": None}


def empty_response(fields: dict[str, Any]) -> None:
    """Take the output out of a response."""
    fields["output"] = []
    fields["status"] = "incomplete"
    fields["incomplete_details"] = {"reason": CONTENT_FILTER}


def empty_message(fields: dict[str, Any]) -> None:
    """Take the blocks out of a message."""
    fields["content"] = [{"type": "text", "text": ""}]
    fields["stop_reason"] = "refusal"
    fields.pop("stop_sequence", None)


EMPTIED: Mapping[Route, Callable[[dict[str, Any]], None]] = {
    Route.CHAT: empty_choices,
    Route.COMPLETIONS: empty_choices,
    Route.RESPONSES: empty_response,
    Route.MESSAGES: empty_message,
}
