"""`/v1/responses` looks as a real engine's: the same events, the same keys in the same order."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatemesh_engine_sim.generation import Emission
from gatemesh_engine_sim.intake import Asked, Route
from gatemesh_engine_sim.responses_wire import ResponsesWire
from gatemesh_engine_sim.steps import END_TOKEN, Candidate, Step
from gatemesh_engine_sim.translations import LOGPROBS_INCLUDED
from gatemesh_engine_sim.wire import Reply, stream_events

ANSWERS = Path(__file__).resolve().parents[2] / "data" / "answers"
Ask = Callable[..., Asked]
WORD = Step("Hi", "Hi", 42, -0.5, (Candidate("Hi", -0.5), Candidate("Yo", -1.0)))
END = Step("", END_TOKEN, 2, -0.25, (Candidate(END_TOKEN, -0.25),))
CUT = [Emission(WORD, "Hi"), Emission(WORD, "Hi", "length")]
ENDED = [Emission(WORD, "Hi"), Emission(END, "", "stop")]


def wire(ask: Ask, **body: Any) -> ResponsesWire:
    """Return the wire of a request."""
    return ResponsesWire(Reply("R", 5, ask(Route.RESPONSES, input="Hi", **body)))


def stream(writer: ResponsesWire, choice: list[Emission]) -> bytes:
    """Return a whole stream."""
    events = [event for _, event in stream_events(writer, [choice])]
    return b"".join([*events, writer.closing([choice])])


def shapes(data: bytes) -> list[tuple[str, Any]]:
    """Return the name and the keys of each kind of event, in order of first sight."""
    found: dict[str, Any] = {}
    for event in data.decode().strip().split("\n\n"):
        name, fields = event.split("\n")
        found.setdefault(name, shape(json.loads(fields.removeprefix("data: "))))
    return list(found.items())


def shape(value: Any) -> Any:
    """Return the keys of a value, in order, down to its parts."""
    if isinstance(value, dict):
        return [(name, shape(each)) for name, each in value.items()]
    return shape(value[0]) if isinstance(value, list) and value else type(value).__name__


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("response_stream.sse", {}),
        ("response_stream_top2.sse", {"include": [LOGPROBS_INCLUDED], "top_logprobs": 2}),
    ],
)
def test_a_stream_has_the_shape_of_a_recorded_one(
    ask: Ask, name: str, body: dict[str, Any]
) -> None:
    """With log probabilities and without."""
    assert shapes(stream(wire(ask, temperature=0.0, **body), CUT)) == shapes(
        (ANSWERS / name).read_bytes()
    )


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("response_whole.json", {}),
        ("response_whole_top0.json", {"include": [LOGPROBS_INCLUDED]}),
    ],
)
def test_a_whole_answer_has_the_shape_of_a_recorded_one(
    ask: Ask, name: str, body: dict[str, Any]
) -> None:
    """With log probabilities and without."""
    whole = wire(ask, temperature=0.0, **body).whole([CUT])
    assert shape(json.loads(whole)) == shape(json.loads((ANSWERS / name).read_bytes()))


def test_events_are_numbered_and_the_end_says_how_it_came(ask: Ask) -> None:
    """A token without text has no event."""
    events = [
        json.loads(event.split("\n")[1].removeprefix("data: "))
        for event in stream(wire(ask), ENDED).decode().strip().split("\n\n")
    ]
    assert [event["sequence_number"] for event in events] == list(range(9))
    assert events[-1]["response"]["status"] == "completed"
    assert wire(ask).usage(3) == b""
