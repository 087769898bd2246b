"""Errors as vLLM words and shapes them."""

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
        error: dict[str, Any] = {"message": self.message, "type": self.kind}
        return orjson.dumps({"error": error | {"param": self.param, "code": self.status}})


def bad_request(message: str, param: str | None = None, *, late: bool = False) -> ApiError:
    """A parameter the engine refuses."""
    return ApiError(400, "BadRequestError", message, param, late=late)


def malformed(problem: str, *place: str) -> ApiError:
    """A body that does not parse, or lacks a field at `place`."""
    where = ("body", *place)
    return ApiError(400, "Bad Request", f"[{{'loc': {where!r}, 'msg': {problem!r}}}]")


def unknown_model(name: str) -> ApiError:
    """Another model than the one served."""
    return ApiError(404, "NotFoundError", f"The model `{name}` does not exist.", "model")


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
