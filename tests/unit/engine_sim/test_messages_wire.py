"""`/v1/messages` looks as a real engine's, byte for byte but for its words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatemesh_engine_sim.errors import unknown_model
from gatemesh_engine_sim.generation import Emission
from gatemesh_engine_sim.intake import Asked, Route
from gatemesh_engine_sim.messages_wire import MessagesWire, message_error
from gatemesh_engine_sim.steps import Candidate, Step
from gatemesh_engine_sim.wire import Reply, stream_events

ANSWERS = Path(__file__).resolve().parents[2] / "data" / "answers"
Ask = Callable[..., Asked]
WORDS = ("Bon", "jour", ",", " welcome", " to", " la", " l", "ég", "ère", ".")


def emission(text: str, finish: str | None = None, stop: str | None = None) -> Emission:
    """Return one token's emission."""
    return Emission(Step(text, text, 1, -0.5, (Candidate(text, -0.5),)), text, finish, stop)


def wire(ask: Ask) -> MessagesWire:
    """Return the wire of a request."""
    return MessagesWire(Reply("rid-1", 5, ask(Route.MESSAGES, max_tokens=10)))


def settled(data: bytes) -> bytes:
    """Return an answer without what depends on the model."""
    return data.replace(b'"sim"', b'"smollm2-135m"').split(b'"usage"')[0]


def test_a_stream_is_that_of_a_real_engine(ask: Ask) -> None:
    """Up to the counts of tokens."""
    choice = [*map(emission, WORDS[:-1]), emission(WORDS[-1], "length")]
    writer = wire(ask)
    sent = b"".join(event for _, event in stream_events(writer, [choice]))
    recorded = (ANSWERS / "message_stream.sse").read_bytes().split(b"\n\n")
    events = (sent + writer.closing([choice])).split(b"\n\n")
    assert list(map(settled, events)) == list(map(settled, recorded))


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        (
            "message_whole.json",
            [emission("Bonjour! I'm a French language tutor.", "length")],
        ),
        ("message_whole_stop.json", [emission("B", "stop", "o")]),
    ],
)
def test_a_whole_answer_is_that_of_a_real_engine(
    ask: Ask, name: str, choice: list[Emission]
) -> None:
    """A stop sequence is named, what is null is left out."""
    assert settled(wire(ask).whole([choice])) == settled((ANSWERS / name).read_bytes())


def test_the_end_of_a_turn_has_a_name_of_its_own(ask: Ask) -> None:
    """And no counts but at the end."""
    whole: dict[str, Any] = json.loads(wire(ask).whole([[emission("Hi", "stop")]]))
    assert whole["stop_reason"] == "end_turn"
    assert wire(ask).usage(3) == b""


def test_errors_have_their_own_shape() -> None:
    """As clients of this route read them."""
    error = json.loads(message_error(unknown_model("a", "b")))
    assert error["type"] == "error"
    assert error["error"]["type"] == "NotFoundError"
