"""vLLM's error bodies."""

import pytest

from gatemesh_engine_sim import errors


@pytest.mark.parametrize(
    ("error", "body"),
    [
        (
            errors.unknown_model("m", "sim"),
            b'{"error":{"message":"The model `m` does not exist. Valid aliases: sim.",'
            b'"type":"NotFoundError",'
            b'"param":"model","code":404}}',
        ),
        (
            errors.not_a_number(),
            b'{"error":{"message":"Out of range float values are not JSON compliant",'
            b'"type":"BadRequestError","param":null,"code":400}}',
        ),
        (
            errors.draining(),
            b'{"error":{"message":"cannot schedule new futures after shutdown",'
            b'"type":"InternalServerError","param":null,"code":500}}',
        ),
    ],
)
def test_body(error: errors.ApiError, body: bytes) -> None:
    """Byte for byte, in vLLM's order."""
    assert error.body() == body


def test_event_has_blanks() -> None:
    """Unlike the body; both seen on the real engine."""
    assert errors.engine_dead().event() == (
        b'data: {"error": {"message": "EngineCore encountered an issue. See stack trace (above) '
        b'for the root cause.", "type": "InternalServerError", "param": null, "code": 500}}\n\n'
    )


def test_malformed_names_the_place() -> None:
    """The kind of a body that does not parse has a blank in its name."""
    error = errors.malformed("missing", "Field required", "messages", value={"a": "secret"})
    assert (error.status, error.kind, error.param) == (400, "Bad Request", "body.messages")
    assert error.message == (
        "1 validation error:\n  {'type': 'missing', 'loc': 'body.messages', "
        "'msg': 'Field required', 'input': '<dict of 1 items>'}"
    )


def test_late_errors_become_events() -> None:
    """Those that vLLM finds after a stream's headers."""
    late = [errors.engine_dead(), errors.queue_full(3), errors.bad_request("x", late=True)]
    early = [errors.draining(), errors.internal_error(), errors.bad_request("x")]
    assert all(error.late for error in late)
    assert not any(error.late for error in early)
