"""An event that is read by its likeness to another says what parsing all of it would tell."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.dialects import read_choices
from gatemesh_agent.reading import Part
from gatemesh_agent.stream import GuardedStream
from gatemesh_agent.stripping import part
from gatemesh_agent.usual_events import MOST_AROUND_BYTES, MOST_TRIES, UsualEvents

START = len(b"data: ")
FIGURES = st.floats(-30, 0) | st.none()
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    ['},"logprobs":', '"},"logprobs":null', '},"finish_reason":', "\\", '"', "\n\n", "é\u2028"]
)


def written(fields: dict[str, Any], *, ascii_only: bool = False) -> bytes:
    """Write an event as engines do."""
    told = json.dumps(fields, ensure_ascii=ascii_only, separators=(",", ":"))
    return b"data: " + told.encode("utf-8", "surrogatepass") + b"\n\n"


def token(said: Any, *figures: float | None, **other: Any) -> dict[str, Any]:
    """Return a chat event of one token."""
    top = [{"token": f"token_id:{n}", "logprob": p, "bytes": [65]} for n, p in enumerate(figures)]
    content = [{**top[0], "top_logprobs": top}] if top else []
    choice = {
        "index": 0,
        "delta": {"content": said},
        "logprobs": {"content": content},
        "finish_reason": None,
        "token_ids": None,
    }
    return {"id": "chatcmpl-1", "model": "m", "choices": [{**choice, **other}]}


def learnt(event: bytes) -> UsualEvents:
    """Return what knows the shape of an event."""
    usual = UsualEvents()
    usual.learn(event, START, part(event, START).fields)
    return usual


def parsed(event: bytes) -> tuple[bytes, Part]:
    """Return the same as parsing all of an event tells."""
    whole = part(event, START)
    (said,) = read_choices(whole.fields, None)
    return whole.rest, said


@given(TEXTS, st.lists(FIGURES, min_size=1, max_size=4), st.booleans())
def test_an_event_alike_says_what_all_of_it_says(
    text: str,
    figures: list[float | None],
    ascii_only: bool,  # noqa: FBT001 (hypothesis passes it)
) -> None:
    """Text and figures are those that parsing all of it tells."""
    event = written(token(text, *figures), ascii_only=ascii_only)
    assert learnt(written(token("a", -0.5))).read(event) == parsed(event)


@given(TEXTS, st.data())
def test_a_damaged_event_is_read_as_parsing_reads_it_or_not_at_all(
    text: str, data: st.DataObject
) -> None:
    """No damage makes it say something else."""
    event = bytearray(written(token(text, -0.25, -1.5)))
    event[data.draw(st.integers(0, len(event) - 1))] = data.draw(st.integers(0, 255))
    found = learnt(written(token("a", -0.5))).read(bytes(event))
    assert found is None or found == parsed(bytes(event))


@pytest.mark.parametrize(
    "other",
    [
        {"index": 1},
        {"finish_reason": "stop"},
        {"delta": {}},
        {"delta": {"role": "assistant", "content": "b"}},
        {"delta": {"content": "b", "reasoning": "c"}},
        {"delta": {"content": None}},
        {"logprobs": None},
        {"token_ids": [1]},
    ],
)
def test_an_event_unlike_is_not_read(other: dict[str, Any]) -> None:
    """Whatever differs beside text and figures is left to the parser."""
    assert learnt(written(token("a", -0.5))).read(written(token("b", -0.5, **other))) is None


@pytest.mark.parametrize(
    "fields",
    [
        token("a", -0.5, finish_reason="stop"),
        token("a", -0.5, index="0"),
        token("a", -0.5, text="b"),
        token("a", -0.5, delta={"content": "a", "reasoning": "b"}),
        {**token("a", -0.5), "choices": [*token("a", -0.5)["choices"], {"index": 1}]},
        {**token("a", -0.5), "logprobs": {"content": []}},
    ],
)
def test_an_odd_event_is_no_pattern(fields: dict[str, Any]) -> None:
    """What is no plain token is not learnt."""
    event = written(fields)
    assert learnt(event).read(event) is None


@pytest.mark.parametrize(
    ("figures", "odd"),
    [
        (b'"logprob":-0.5', b'"logprob":-1'),
        (b'"logprob":-0.5', b'"logprob":-9999.0'),
        (b'"logprob":-0.5', b'"logprob":null'),
        (b'"logprob":-0.5', b'"logprob":"-0.5"'),
        (b'"logprob":-0.5', b'"logprob":true'),
        (b'"logprob":-0.5', b'"logprob":NaN'),
        (b'"logprob":-0.5', b'"logprob":-1e999'),
        (b'"logprob":-0.5', b'"other":0'),
        (b'"bytes":[65]', b'"bytes":null'),
        (b'"bytes":[65]', b'"bytes":[300]'),
        (b'"bytes":[65]', b'"bytes":["A"]'),
        (b'"token":"token_id:0"', b'"token":"\xff"'),
        (b'"token":"token_id:0"', b'"token":"\\ud800"'),
        (b'"token":"token_id:1"', b'"token":"\xe2\x82"'),
        (b'"token":"token_id:1"', b'"token":"\xc3\xa9"'),
        (b'"token":"token_id:1"', b'"token":"\n"'),
        (b'"token":"token_id:1"', b'"token":17'),
        (b'"top_logprobs":', b'"top_logprobs":[],"top_logprobs":'),
        (b'"top_logprobs":', b'"top":'),
        (b'{"content":[', b'{"content":null,"c":['),
        (b'"bytes":[65]', b'"bytes":null,"deep":' + b"[" * 100_000 + b"]" * 100_000),
    ],
)
def test_odd_figures_are_read_as_parsing_reads_them_or_not_at_all(
    figures: bytes, odd: bytes
) -> None:
    """Whichever of the two parsers is the stricter one."""
    event = written(token("b", -0.5, -0.5)).replace(figures, odd)
    assert odd in event
    found = learnt(written(token("a", -0.5))).read(event)
    assert found is None or found == parsed(event)


def test_what_stands_around_has_a_limit() -> None:
    """It is held as long as the stream runs."""
    event = written({**token("a", -0.5), "model": "m" * MOST_AROUND_BYTES})
    assert learnt(event).read(event) is None


def test_two_values_of_one_name_are_no_pattern() -> None:
    """Log probabilities that stand twice would go out with the rest."""
    twice = written(token("a", -0.5)).replace(b'"delta"', b'"logprobs":{"content":[]},"delta"')
    assert learnt(twice).read(twice) is None


def test_the_pattern_changes_with_the_stream() -> None:
    """The newest pattern counts."""
    usual = learnt(written(token("a", -0.5)))
    second = written({**token("b", -0.5), "id": "chatcmpl-2"})
    assert usual.read(second) is None
    usual.learn(second, START, part(second, START).fields)
    assert usual.read(second) == parsed(second)


def test_an_odd_stream_is_not_looked_at_for_ever() -> None:
    """Learning ends where nothing is learnt."""
    usual = UsualEvents()
    odd, event = written(token("a", -0.5, finish_reason="stop")), written(token("a", -0.5))
    for _ in range(MOST_TRIES):
        usual.learn(odd, START, part(odd, START).fields)
    usual.learn(event, START, part(event, START).fields)
    assert usual.read(event) is None


class Witness:
    """Keeps what is said of choices, however it was read."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.alike = 0
        self.why: str | None = None

    def take_event(self, fields: dict[str, Any], raw: bytes | None = None) -> None:
        """Keep it."""
        self.parts += read_choices(fields, None)

    def take_part(self, part: Part, raw: bytes) -> None:
        """Keep it."""
        self.parts.append(part)
        self.alike += 1

    def give_up(self, why: str) -> None:
        """Keep the first reason."""
        self.why = self.why or why


@given(st.lists(TEXTS, max_size=6), st.lists(st.integers(0, 5000), max_size=12))
def test_a_stream_is_the_same_with_it_and_without(texts: list[str], places: list[int]) -> None:
    """Bytes and readings are the same, however the stream was cut."""
    first = written(token("", delta={"role": "assistant", "content": ""}, logprobs=None))
    data = first + b"".join(written(token(text, -0.5, -1.0)) for text in texts)
    data += written(token("", -0.5, finish_reason="stop")) + b"data: [DONE]\n\n"
    marks = sorted({place % (len(data) + 1) for place in places})
    pieces = [data[a:b] for a, b in zip([0, *marks], [*marks, len(data)], strict=True)]
    told = []
    for usual in (None, UsualEvents()):
        witness = Witness()
        stream = GuardedStream(witness, added=True, drops_bare=True, limit_bytes=10**6, usual=usual)
        rest = b"".join(map(stream.feed, pieces)) + stream.end()
        told.append((rest, witness.parts, witness.why))
        assert witness.alike == (max(0, len(texts) - 1) if usual else 0)
    assert told[0] == told[1]
