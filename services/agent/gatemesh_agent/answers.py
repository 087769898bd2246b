"""Errors that clients see from the agent itself, in the shape that the engine uses. Pure."""

from collections.abc import Callable, Mapping

import orjson

from gatemesh_agent.requests import Route
from gatemesh_agent.sse import DONE


def error_body(status: int, kind: str, message: str) -> bytes:
    """Return the JSON of an error."""
    error = {"message": message, "type": kind, "param": None, "code": status}
    return orjson.dumps({"error": error})


def door_body(kind: str, code: str, message: str) -> bytes:
    """Return the JSON of an error with a code that clients' libraries know."""
    error = {"message": message, "type": kind, "param": None, "code": code}
    return orjson.dumps({"error": error})


def error_event(status: int, kind: str, message: str) -> bytes:
    """Return the events that end a stream with an error."""
    return b"data: " + error_body(status, kind, message) + b"\n\n" + DONE


def no_instance(pool: str) -> bytes:
    """Say that nobody can serve, and what to do."""
    return error_body(
        503,
        "NoInstanceAvailable",
        f"no instance of pool {pool!r} is in rotation; try again shortly, and see the pool's "
        "instances with `gatemesh-ctl status`",
    )


def upstream_failed(instance_id: str, what: str) -> bytes:
    """Say that an instance failed before it answered, and no other could take over."""
    return error_body(502, "UpstreamBroken", f"instance {instance_id!r} {what}; send it again")


def upstream_silent(instance_id: str, waited_s: float) -> bytes:
    """Say that an instance did not begin to answer in time."""
    return error_body(
        504,
        "UpstreamTimeout",
        f"instance {instance_id!r} sent no byte in {waited_s:g} s; send it again",
    )


def stream_broken(route: Route, instance_id: str, what: str) -> bytes:
    """End a stream that an instance broke off."""
    message = f"the stream from instance {instance_id!r} {what}; send it again"
    if route in (Route.RESPONSES, Route.MESSAGES):
        return NAMED_EVENT % shape_of(route)(error_body(502, "UpstreamBroken", message))
    return error_event(502, "UpstreamBroken", message)


NAMED_EVENT = b"event: error\ndata: %b\n\n"


def shape_of(route: Route | None) -> Callable[[bytes], bytes]:
    """Return what turns an error body into that of a route."""
    return SHAPES.get(route, bytes)


def message_error(body: bytes) -> bytes:
    """Return an error as `/v1/messages` words it."""
    error = orjson.loads(body)["error"]
    kind = ANTHROPIC_TYPES.get(error["code"], "api_error")
    return orjson.dumps({"type": "error", "error": {"type": kind, "message": error["message"]}})


ANTHROPIC_TYPES: Mapping[int | str, str] = {
    400: "invalid_request_error",
    "content_filter": "invalid_request_error",
    "invalid_api_key": "authentication_error",
    "not_found": "not_found_error",
    "rate_limit_exceeded": "rate_limit_error",
    408: "timeout_error",
    413: "request_too_large",
    503: "overloaded_error",
    504: "timeout_error",
}
"""Types of error by code."""

SHAPES: Mapping[Route | None, Callable[[bytes], bytes]] = {Route.MESSAGES: message_error}


def answers_unfit(reason: str, tried: int) -> bytes:
    """Say that every instance's answer was proven bad, and whether another try can help."""
    if tried > 1:
        code, found = "answers_unfit_everywhere", f"{tried} instances' answers were withheld"
        advice = EVERYWHERE
    else:
        code, found = "answers_unfit", "1 instance's answer was withheld"
        advice = "nobody else answered; send it again"
    message = f"{found} as damaged ({reason}): {advice}"
    return door_body("AnswersUnfit", code, message)


EVERYWHERE = (
    "the prompt or the model version is at fault, so sending it again will not help; change the "
    "prompt, or tell those who run the pool"
)
"""What is known of a request that was answered badly by more than one instance."""


def too_large(limit_bytes: int) -> bytes:
    """Say that a request body is too large."""
    return error_body(
        413,
        "RequestTooLarge",
        f"the request body is larger than {limit_bytes} bytes, the agent's "
        "GATEMESH_AGENT_MAX_BODY_BYTES",
    )


def too_slow(waited_s: float) -> bytes:
    """Say that a request's body did not come in time."""
    return error_body(
        408,
        "RequestTimeout",
        f"the request body did not arrive within {waited_s:g} s, the agent's GATEMESH_AGENT_BODY_S",
    )
