"""Server-sent events, split and merged anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.sse import EventSplitter, json_start

EVENT = st.sampled_from(
    [
        b'data: {"a":1}\n\n',
        b": keep-alive\n\n",
        b"data: [DONE]\n\n",
        b'event: x\ndata:{"b":2}\n\n',
        b'data: {"c":3}\r\n\r\n',
        b"data: \xe4\xbd\xa0\n\n",
    ]
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut data at the places given, modulo its length."""
    marks = sorted({place % (len(data) + 1) for place in places})
    return [data[a:b] for a, b in zip([0, *marks], [*marks, len(data)], strict=True)]


@given(st.lists(EVENT), st.lists(st.integers(0, 10_000)), st.binary(max_size=5))
def test_any_cut_gives_the_same_events(events: list[bytes], places: list[int], torn: bytes) -> None:
    """How the network cuts a stream changes nothing."""
    torn = torn.replace(b"\n", b"").replace(b"\r", b"")
    splitter = EventSplitter()
    found = [
        event for piece in cut(b"".join(events) + torn, places) for event in splitter.feed(piece)
    ]
    assert found == events
    assert splitter.take_rest() == torn


def test_a_boundary_cut_within_crlf_belongs_to_its_event() -> None:
    """The LF of a CRLF never begins the next event."""
    splitter = EventSplitter()
    assert splitter.feed(b"data: 1\r\n\r") == []
    assert splitter.feed(b"\ndata: 2\r\n\r\n") == [b"data: 1\r\n\r\n", b"data: 2\r\n\r\n"]


def test_rest_is_taken_once() -> None:
    """What was taken is not given out again."""
    splitter = EventSplitter()
    splitter.feed(b"data: {")
    assert splitter.rest == b"data: {"
    assert splitter.take_rest() == b"data: {"
    assert splitter.rest == b""


@pytest.mark.parametrize(
    ("event", "start"),
    [
        pytest.param(b'data: {"a":1}\n\n', 6, id="space"),
        pytest.param(b'data:{"a":1}\n\n', 5, id="no-space"),
        pytest.param(b'event: x\ndata: {"a":1}\n\n', 15, id="named"),
        pytest.param(b"data: [DONE]\n\n", -1, id="done"),
        pytest.param(b": {keep-alive}\n\n", -1, id="comment"),
        pytest.param(b'{"a":1}\n\n', -1, id="no-field"),
    ],
)
def test_json_start(event: bytes, start: int) -> None:
    """Only data that is a JSON object is read."""
    assert json_start(event) == start
