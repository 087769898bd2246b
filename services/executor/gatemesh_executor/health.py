"""Whether an engine answers `/health`; it proves that it accepts requests, nothing more."""

from enum import StrEnum
from http import HTTPStatus
from types import TracebackType
from typing import Protocol, Self

import aiohttp

DEADLINE_S = 2.0


class Health(StrEnum):
    """What one look at an engine found."""

    READY = "ready"
    NOT_READY = "not_ready"
    """It answered otherwise, or not in time."""
    REFUSED = "refused"
    """Nobody accepts connections there."""


class EngineHealth(Protocol):
    """Looks at engines."""

    async def look(self, base_url: str) -> Health:
        """Return what one request found; never raises for a bad engine."""


class HttpHealth:
    """Asks the engine itself, on a new connection each time."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True),
            timeout=aiohttp.ClientTimeout(total=DEADLINE_S),
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

    async def look(self, base_url: str) -> Health:
        """Ask `/health` once."""
        if self._session is None:
            raise RuntimeError("HttpHealth is used outside of its context")
        try:
            async with self._session.get(f"{base_url}/health") as response:
                return Health.READY if response.status == HTTPStatus.OK else Health.NOT_READY
        except aiohttp.ClientConnectorError:
            return Health.REFUSED
        except (aiohttp.ClientError, OSError, TimeoutError):
            return Health.NOT_READY
