"""Tokens of an answer: as the engine says, else one an event."""

import json

import pytest

from gatemesh_agent.metering import TAIL_BYTES, USAGE_BYTES, Meter

CHAT = b'"usage":{"prompt_tokens":10,"total_tokens":30,"completion_tokens":20,"details":null}'
RESPONSE = (
    b'"usage": {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 4}, '
    b'"output_tokens": 7, "total_tokens": 12}'
)
MESSAGE = b'"usage":{"input_tokens":5,"output_tokens":7}'


def count(*pieces: bytes) -> int:
    """Return what a meter says of an answer in pieces."""
    meter = Meter()
    for piece in pieces:
        meter.see(piece)
    return meter.tokens()


@pytest.mark.parametrize(
    ("usage", "tokens"), [(CHAT, 30), (RESPONSE, 12), (MESSAGE, 12)], ids=["chat", "resp", "msg"]
)
def test_the_engine_s_own_count_wins(usage: bytes, tokens: int) -> None:
    """Prompt and answer together, however the answer is cut into pieces."""
    answer = b'{"choices":[],%b}' % usage
    assert count(answer) == tokens
    assert count(*(answer[i : i + 3] for i in range(0, len(answer), 3))) == tokens
    stream = [b'data: {"x":1}\n\n'] * 2000
    assert count(*stream, b"data: {%b}\n\n" % usage, b"data: [DONE]\n\n") == tokens


def test_the_last_one_counts() -> None:
    """A stream may tell again and again how many there are by now."""
    assert count(CHAT, b"x" * 100, CHAT.replace(b"30", b"31")) == 31


def test_without_a_count_an_event_is_a_token() -> None:
    """As engines send them; an answer that is none costs nothing."""
    assert count(*[b'data: {"usage":null}\n\n'] * 5) == 5
    assert count(b'{"object":"list"}') == 0


def test_a_text_that_speaks_of_its_use_is_no_count() -> None:
    """A model may write anything; in JSON its quotes are escaped."""
    said = json.dumps({"text": '"usage":{"total_tokens":1}'}).encode()
    assert count(said) == 0


@pytest.mark.parametrize("size", [1, TAIL_BYTES, USAGE_BYTES, 50_000])
def test_what_comes_behind_the_count_hides_nothing(size: int) -> None:
    """A client who asks for figures of the prompt gets them there, as much as it likes."""
    behind = b',"prompt_logprobs":[%b]}' % (b"1," * size)
    answer = b'{"choices":[],%b%b' % (CHAT, behind)
    assert count(answer) == 30
    assert count(*(answer[i : i + 7] for i in range(0, len(answer), 7))) == 30


def test_no_more_than_the_count_is_kept() -> None:
    """An answer of any length costs the same memory."""
    meter = Meter()
    for piece in (CHAT, *([b"x" * 5000] * 3)):
        meter.see(piece)
    kept = [getattr(meter, name) for name in ("_tail", "_usage")]
    assert [len(each) for each in kept] == [TAIL_BYTES, USAGE_BYTES]
