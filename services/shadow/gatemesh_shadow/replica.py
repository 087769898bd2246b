"""Asks a healthy instance directly, not through the agent: never counted as client traffic."""

from collections.abc import Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson

from gatemesh_shadow.errors import (
    ReplicaBrokenError,
    ReplicaRefusedError,
    ReplicaUnavailableError,
)

NOT_JSON = b"Out of range float values"
"""What an engine answers where a figure it has to write is NaN."""


class ReplicaClient:
    """HTTP towards instances, with a deadline on every request."""

    def __init__(self, deadline_s: float, api_key: str = "") -> None:
        self._deadline_s = deadline_s
        self._headers = {"Content-Type": "application/json", "X-Gatemesh-Purpose": "shadow"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers=self._headers, timeout=aiohttp.ClientTimeout(total=self._deadline_s)
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(self, base_url: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request and return the whole answer.

        Raises:
            ReplicaUnavailableError: no answer in time, or a server error.
            ReplicaRefusedError: the request is refused for good.
            ReplicaBrokenError: the instance cannot write its own figures, or no JSON.
        """
        if self._session is None:
            raise RuntimeError("ReplicaClient is used outside of its context")
        try:
            raw = orjson.dumps(body)
            async with self._session.post(f"{base_url}{path}", data=raw) as response:
                return read(response.status, await response.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ReplicaUnavailableError(type(error).__name__) from error

    async def model(self, base_url: str) -> str:
        """The first model that an instance serves; raises as `post` does."""
        if self._session is None:
            raise RuntimeError("ReplicaClient is used outside of its context")
        try:
            async with self._session.get(f"{base_url}/v1/models") as response:
                listed = read(response.status, await response.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ReplicaUnavailableError(type(error).__name__) from error
        names = [str(one["id"]) for one in listed.get("data", ()) if "id" in one]
        if not names:
            raise ReplicaRefusedError(HTTPStatus.NOT_FOUND)
        return names[0]


def read(status: int, raw: bytes) -> dict[str, Any]:
    """Read an answer; raises as `ReplicaClient.post` does."""
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        raise ReplicaUnavailableError(f"status {status}")
    if status != HTTPStatus.OK:
        if NOT_JSON in raw:
            raise ReplicaBrokenError("its figures are no numbers")
        raise ReplicaRefusedError(status)
    try:
        answer = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ReplicaBrokenError("its answer is no JSON") from error
    if not isinstance(answer, dict) or "error" in answer:
        raise ReplicaBrokenError("its answer is no answer")
    return answer
