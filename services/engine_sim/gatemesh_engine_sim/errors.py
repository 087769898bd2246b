"""Errors as vLLM words and shapes them."""

import json
from typing import Any

import orjson


class ApiError(Exception):
    """An answer other than 200, with everything vLLM puts into its body."""

    def __init__(
        self, status: int, kind: str, message: str, param: str | None = None, *, late: bool = False
    ) -> None:
        super().__init__(message)
        self.late = late
        """True for what vLLM finds after a stream's headers: an event under status 200."""
        self.status = status
        self.kind = kind
        self.message = message
        self.param = param

    def body(self) -> bytes:
        """The JSON body."""
        return orjson.dumps(self._error())

    def event(self) -> bytes:
        """The same as an event of a stream, in the wider spacing vLLM uses there."""
        return b"data: " + json.dumps(self._error()).encode() + b"\n\n"

    def _error(self) -> dict[str, Any]:
        error: dict[str, Any] = {"message": self.message, "type": self.kind}
        return {"error": error | {"param": self.param, "code": self.status}}


def bad_request(message: str, param: str | None = None, *, late: bool = False) -> ApiError:
    """A parameter the engine refuses."""
    return ApiError(400, "BadRequestError", message, param, late=late)


def malformed(kind: str, problem: str, *place: str, value: object = None) -> ApiError:
    """A body that does not parse, or has a wrong `value` at `place`."""
    where = ".".join(("body", *place))
    found = {"type": kind, "loc": where, "msg": problem, "input": _shown(value)}
    return ApiError(400, "Bad Request", f"1 validation error:\n  {found}", where)


def _shown(value: object) -> object:
    """Containers are named by their size only: no text of a request in an error."""
    if isinstance(value, dict | list):
        return f"<{type(value).__name__} of {len(value)} items>"
    return value


def unknown_model(name: str, served: str) -> ApiError:
    """Another model than the one served."""
    message = f"The model `{name}` does not exist. Valid aliases: {served}."
    return ApiError(404, "NotFoundError", message, "model")


def engine_dead() -> ApiError:
    """The engine died or was stopped under a running request."""
    message = "EngineCore encountered an issue. See stack trace (above) for the root cause."
    return ApiError(500, "InternalServerError", message, late=True)


def internal_error() -> ApiError:
    """A failure of the server itself, before the engine saw the request."""
    return ApiError(500, "InternalServerError", "Internal server error")


def draining() -> ApiError:
    """A new request after SIGTERM, while running ones finish."""
    return ApiError(500, "InternalServerError", "cannot schedule new futures after shutdown")


def queue_full(limit: int) -> ApiError:
    """More requests wait than the setting allows."""
    message = f"The engine is busy and cannot accept new requests: {limit} requests are queued."
    return ApiError(503, "Service Unavailable", message, late=True)


def not_a_number() -> ApiError:
    """NaN log probabilities in an answer that is not streamed."""
    return bad_request("Out of range float values are not JSON compliant")
