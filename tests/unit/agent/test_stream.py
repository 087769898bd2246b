"""A guarded stream gives the client what the engine would have sent, however it was cut."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from gatemesh_agent.attribution import ClientRequest
from gatemesh_agent.judging import Judging
from gatemesh_agent.reading import Part
from gatemesh_agent.reporting import Life, Origin, Reporter
from gatemesh_agent.requests import Route, understand
from gatemesh_agent.stream import GuardedStream, Untouched, announces_only, cut_whole
from gatemesh_agent.strippers import RESPONSES
from gatemesh_agent.telemetry import Telemetry
from gatemesh_agent.traffic import Exchange
from gatemesh_agent.upstream import Order
from gatemesh_common.messages import Message, Verdict

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DONE = b"data: [DONE]\n\n"


class Witness:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.why: str | None = None

    def take_event(self, fields: dict[str, Any], raw: bytes | None = None) -> None:
        """Keep it."""
        self.events.append(fields)

    def take_part(self, part: Part, raw: bytes) -> None:
        """Take nothing: without `UsualEvents` no event is read at once."""
        raise AssertionError(part, raw)

    def give_up(self, why: str) -> None:
        """Keep the first reason."""
        self.why = self.why or why


def sse(fields: dict[str, Any]) -> bytes:
    """Write an event as the engine does."""
    return (
        b"data: " + json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
    )


def token(text: str | None, *, logprobs: bool, finish: str | None = None) -> dict[str, Any]:
    """Return a chat event; without text it carries log probabilities only."""
    content = [{"token": "x", "logprob": -0.5, "bytes": None, "top_logprobs": []}]
    return {
        "id": "1",
        "choices": [
            {
                "index": 0,
                "delta": {} if text is None else {"content": text},
                "logprobs": {"content": content} if logprobs else None,
                "finish_reason": finish,
            }
        ],
    }


TOKENS = st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=4), max_size=8)


def run(
    pieces: list[bytes], *, added: bool = True, drops_bare: bool = True, limit: int = 10**6
) -> tuple[bytes, Witness]:
    """Return what the client gets and what the judge saw."""
    witness = Witness()
    stream = GuardedStream(witness, added=added, drops_bare=drops_bare, limit_bytes=limit)
    return b"".join(map(stream.feed, pieces)) + stream.end(), witness


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut data at the places given."""
    marks = sorted({place % (len(data) + 1) for place in places})
    return [data[a:b] for a, b in zip([0, *marks], [*marks, len(data)], strict=True)]


@given(TOKENS, st.lists(st.integers(0, 100_000), max_size=20))
def test_any_cut_gives_the_plain_stream_and_shows_every_event(
    texts: list[str | None], places: list[int]
) -> None:
    """Events that exist only for log probabilities vanish, but the judge has seen them."""
    sent = b"".join(sse(token(text, logprobs=True)) for text in texts) + DONE
    plain = b"".join(sse(token(text, logprobs=False)) for text in texts if text is not None) + DONE
    got, witness = run(cut(sent, places))
    assert got == plain
    assert witness.events == [token(text, logprobs=True) for text in texts]


def test_pieces_come_as_soon_as_each_event_is_judged() -> None:
    """So that whoever holds one back knows what was said till then."""
    witness = Witness()
    stream = GuardedStream(witness, added=True, drops_bare=True, limit_bytes=10**6)
    sent = [sse(token(text, logprobs=True)) for text in ("a", "b")]
    pieces = stream.pieces(b"".join(sent))
    assert next(pieces) == sse(token("a", logprobs=False))
    assert len(witness.events) == 1
    assert list(pieces) == [sse(token("b", logprobs=False))]


@given(TOKENS, st.lists(st.integers(0, 100_000), max_size=20))
def test_what_the_client_asked_itself_is_not_touched(
    texts: list[str | None], places: list[int]
) -> None:
    """Its log probabilities are its own."""
    sent = b"".join(sse(token(text, logprobs=True)) for text in texts) + DONE
    got, witness = run(cut(sent, places), added=False)
    assert got == sent
    assert len(witness.events) == len(texts)


def test_bare_events_stay_for_clients_that_see_them_anyway() -> None:
    """With `return_token_ids` the engine sends them without log probabilities, too."""
    got, _ = run([sse(token(None, logprobs=True))], drops_bare=False)
    assert got == sse(token(None, logprobs=False))


def test_an_end_without_text_is_kept() -> None:
    """The finish reason travels in it."""
    got, _ = run([sse(token(None, logprobs=True, finish="stop"))])
    assert got == sse(token(None, logprobs=False, finish="stop"))


@given(st.lists(st.integers(0, 100_000), max_size=20))
def test_an_event_too_long_to_hold_passes_unjudged(places: list[int]) -> None:
    """Memory is bounded, and what was added is still taken out."""
    long = token("x" * 500, logprobs=True)
    plain = sse(token("x" * 500, logprobs=False))
    got, witness = run(cut(sse(long) * 3 + DONE, places), limit=100)
    assert got == plain * 3 + DONE
    assert witness.why in (None, "too_large")
    got, _ = run(cut(sse(long) * 3, places), limit=100, added=False)
    assert got == sse(long) * 3


def test_what_cannot_be_read_passes_and_is_given_up() -> None:
    """Broken bytes are the client's to see."""
    for event in (b'data: {"a":"\xff"}\n\n', b"data: {torn\n\n"):
        got, witness = run([event])
        assert (got, witness.why) == (event, "unreadable")
        got, witness = run([event], added=False)
        assert (got, witness.why) == (event, "unreadable")


def test_comments_and_other_fields_pass() -> None:
    """Keep-alives are no answers."""
    sent = b": keep-alive\n\nevent: ping\nid: 3\n\n" + DONE + b"rest"
    got, witness = run([sent])
    assert got == sent
    assert witness.events == []


def test_small_parts() -> None:
    """What stands in for a cut leaves everything, and a cut leaves no trace."""
    assert Untouched().feed(b"x") + Untouched().end() == b"x"
    assert cut_whole(b'{"logprobs":{"a":[1]},"b":\xff}') == b'{"logprobs":null,"b":\xff}'


@given(st.integers(0, 5), st.lists(st.integers(0, 100_000), max_size=20))
def test_any_cut_gives_the_same_verdicts(onset: int, places: list[int]) -> None:
    """From the real gates, on a stream whose figures turn into NaN."""
    events = [token(f"word{number} ", logprobs=True) for number in range(6)]
    for event in events[onset:]:
        event["choices"][0]["logprobs"]["content"][0]["logprob"] = None
    sent = b"".join(map(sse, events)) + sse(token("", logprobs=True, finish="stop")) + DONE
    assert verdicts(cut(sent, places)) == verdicts([sent]) == [("L3", "nan_logits", onset + 1)]


def verdicts(pieces: list[bytes]) -> list[tuple[str, str, int]]:
    """Return what the real gates publish about a stream."""
    published: list[Message] = []
    telemetry = Telemetry("agent-0", "p", NOON)
    reporter = Reporter("agent-0", "p", telemetry, published.append, lambda: NOON)
    judging = Judging(reporter, lambda: NOON, lambda _: None)
    asked = understand(Route.CHAT, b'{"messages":[{"role":"user","content":"Count words"}]}')
    life = Life("engine-0", 1, None, numbered=True)
    order = Order("POST", Route.CHAT, CIMultiDict(), asked.raw)
    client = ClientRequest(asked, Origin("R"), order)
    with judging.begin(Exchange(client, life, streamed=True, wished=20)) as judge:
        stream = GuardedStream(judge, added=True, drops_bare=True, limit_bytes=10**6)
        for piece in pieces:
            stream.feed(piece)
        stream.end()
    found = [each for each in published if isinstance(each, Verdict)]
    return [(each.check_level, each.reason, each.details["tokens"]) for each in found]


ENTRY = {"token": "x", "logprob": -0.5, "top_logprobs": [{"token": "]}]", "logprob": -0.5}]}


def response_events(count: int, *, asked: bool) -> bytes:
    """Return the stream of a response that repeats all its log probabilities at its end."""
    content = {"text": "x" * count, "logprobs": [ENTRY] * count if asked else None}
    events: list[dict[str, Any]] = [
        {"delta": "x", "logprobs": [ENTRY] if asked else [], "type": "response.output_text.delta"}
    ] * count
    events += [
        {"part": content, "type": "response.content_part.done"},
        {"item": {"content": [content]}, "type": "response.output_item.done"},
        {
            "response": {
                "output": [{"content": [content]}],
                "status": "completed",
                "top_logprobs": 1 if asked else None,
            },
            "type": "response.completed",
        },
    ]
    return b"".join(b"event: %b\n" % event["type"].encode() + sse(event) for event in events)


@given(st.integers(1, 40), st.lists(st.integers(0, 100_000), max_size=20))
def test_events_that_repeat_everything_are_judged_however_long(
    count: int, places: list[int]
) -> None:
    """Held without their log probabilities they fit, and their end is seen."""
    witness = Witness()
    stream = GuardedStream(
        witness, added=True, drops_bare=False, limit_bytes=400, stripper=RESPONSES
    )
    sent = response_events(count, asked=True)
    got = b"".join(map(stream.feed, cut(sent, places))) + stream.end()
    assert got == response_events(count, asked=False)
    assert witness.why is None
    assert len(witness.events) == count + 3
    assert [event.get("logprobs") for event in witness.events[:count]] == [[ENTRY]] * count
    assert witness.events[-1]["response"]["status"] == "completed"


def test_a_long_text_passes_unjudged() -> None:
    """What is left of it must fit."""
    witness = Witness()
    stream = GuardedStream(
        witness, added=True, drops_bare=False, limit_bytes=200, stripper=RESPONSES
    )
    sent = response_events(300, asked=True)
    pieces = [sent[at : at + 50] for at in range(0, len(sent), 50)]
    got = b"".join(map(stream.feed, pieces)) + stream.end()
    assert got == response_events(300, asked=False)
    assert witness.why == "too_large"


CREATED = b"event: response.created\ndata: {}\n\n"


@pytest.mark.parametrize(
    ("data", "waits"),
    [
        (b"", True),
        (b"event: response.cre", True),
        (CREATED, True),
        (CREATED + b"event: response.in_progress\ndata: {}\n\n", True),
        (CREATED + b"event: response.output_item.added\n", False),
        (b"event: error\ndata: {}\n\n", False),
        (b"data: {}\n\n", False),
        (b"x" * 2**20, False),
    ],
)
def test_an_announcement_is_no_answer(data: bytes, waits: bool) -> None:  # noqa: FBT001
    """Until there is more, another instance can still take over."""
    assert announces_only(Route.RESPONSES, data) is waits
    assert not announces_only(Route.CHAT, data)
