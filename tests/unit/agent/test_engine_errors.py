"""Engine errors that mean something else."""

import pytest

from gatemesh_agent.engine_errors import (
    drain_refused,
    engine_died,
    highest_allowed,
    may_pass,
    names_logprobs,
    names_token_ids,
    opens_with_error,
    told_status,
)

DRAIN = (
    b'{"error":{"message":"cannot schedule new futures after shutdown",'
    b'"type":"InternalServerError","param":null,"code":500}}'
)
DEAD = (
    b'{"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root '
    b'cause.","type":"InternalServerError","param":null,"code":500}}'
)
CAP = (
    b'{"error":{"message":"Requested sample logprobs of 20, which is greater than max allowed: 5 '
    b'(parameter=logprobs, value=20)","type":"BadRequestError","param":"logprobs","code":400}}'
)


def test_a_drain_is_known_by_status_and_words() -> None:
    """Text of an answer never passes for it."""
    assert drain_refused(500, DRAIN)
    assert not drain_refused(200, DRAIN)
    assert not drain_refused(500, DEAD)


def test_a_death_is_known_by_status_and_words() -> None:
    """Other internal errors are the client's to see."""
    assert engine_died(500, DEAD)
    assert not engine_died(400, DEAD)
    assert not engine_died(500, b"Internal Server Error")


def test_only_an_opening_error_means_that_nothing_was_generated() -> None:
    """Both spellings that the engine uses."""
    assert opens_with_error(b'data: {"error": {"message": "x"}}\n\n')
    assert opens_with_error(b'data: {"error":{"message":"x"}}\n\n')
    assert not opens_with_error(b'data: {"id":"x"}\n\ndata: {"error":{}}\n\n')


@pytest.mark.parametrize(
    ("body", "below", "allowed"),
    [
        pytest.param(CAP, 20, 5, id="cap"),
        pytest.param(CAP, 5, 4, id="never-again-the-same"),
        pytest.param(b'{"error":"logprobs"}', 20, None, id="another-reason"),
    ],
)
def test_the_engines_cap(body: bytes, below: int, allowed: int | None) -> None:
    """Asking again comes to an end."""
    assert highest_allowed(body, below) == allowed
    assert names_logprobs(body)


def test_token_ids_may_be_minded() -> None:
    """By an engine that takes only fields it knows."""
    assert names_token_ids(b'{"error":{"message":"Unrecognized: return_tokens_as_token_ids"}}')
    assert not names_token_ids(CAP)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b'data: {"error": {"message": "busy", "code": 503}}\n\ndata: [DONE]\n\n', 503),
        (b'data: {"error": {"message": "no", "code": 400}}\n\n', 400),
        (b'data: {"error": {"message": "odd", "code": "internal"}}\n\n', 500),
        (b'data: {"error": {"message": "odd", "code": true}}\n\n', 500),
        (b'data: {"error": "odd"}\n\n', 500),
        (b'data: {"error": {"message": "odd", "code": "429"}}\n\n', 429),
        (b'data: {"error": {"message": "odd", "code": "context_length_exceeded"}}\n\n', 400),
        (b'data: {"error": {"type": "invalid_request_error", "code": null}}\n\n', 400),
        (b'data: {"error": {"type": "server_error", "code": null}}\n\n', 500),
        (b'data: {"error": {"mess', 500),
        (b'data: {"error": "\xff', 500),
    ],
)
def test_the_error_of_a_stream_tells_its_status(data: bytes, status: int) -> None:
    """What tells none is the engine's own."""
    assert told_status(data) == status


def test_what_another_may_answer() -> None:
    """No room, or a fault of the server; never what is wrong with the request."""
    assert [status for status in range(200, 600) if may_pass(status)] == [429, 500, 502, 503, 504]
