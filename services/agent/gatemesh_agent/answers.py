"""Errors that clients see from the agent itself, in the shape that the engine uses. Pure."""

import orjson

from gatemesh_agent.sse import DONE


def error_body(status: int, kind: str, message: str) -> bytes:
    """Return the JSON of an error."""
    error = {"message": message, "type": kind, "param": None, "code": status}
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


def stream_broken(instance_id: str, what: str) -> bytes:
    """End a stream that an instance broke off."""
    return error_event(
        502, "UpstreamBroken", f"the stream from instance {instance_id!r} {what}; send it again"
    )


def too_large(limit_bytes: int) -> bytes:
    """Say that a request body is too large."""
    return error_body(
        413,
        "RequestTooLarge",
        f"the request body is larger than {limit_bytes} bytes, the agent's "
        "GATEMESH_AGENT_MAX_BODY_BYTES",
    )
