"""What an event, or a whole answer, of any guarded route says of each choice. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gatemesh_agent import messages_reading, responses_reading
from gatemesh_agent.reading import Part, read_choice
from gatemesh_agent.requests import Route
from gatemesh_agent.stripping import choices_of

Reader = Callable[[dict[str, Any], int | None], Iterator[Part]]
"""Takes the JSON of an event or answer, and how many log probabilities were asked per token."""


def read_choices(fields: dict[str, Any], top_logprobs: int | None) -> Iterator[Part]:
    """Yield what each choice of a chat completion or completion says."""
    for choice in choices_of(fields):
        index, reason = choice.get("index", 0), choice.get("finish_reason")
        if isinstance(index, int) and index >= 0:
            reading = read_choice(choice, top_logprobs)
            yield Part(index, reading, reason if isinstance(reason, str) else None)


def read_response(fields: dict[str, Any], _top_logprobs: int | None) -> Iterator[Part]:
    """Yield what a response, or an event of one, says; it has one choice."""
    part = responses_reading.read(fields)
    if part is not None:
        yield part


def read_message(fields: dict[str, Any], _top_logprobs: int | None) -> Iterator[Part]:
    """Yield what a message, or an event of one, says; it has one choice."""
    part = messages_reading.read(fields)
    if part is not None:
        yield part


READERS: Mapping[Route, Reader] = {
    Route.CHAT: read_choices,
    Route.COMPLETIONS: read_choices,
    Route.RESPONSES: read_response,
    Route.MESSAGES: read_message,
}
