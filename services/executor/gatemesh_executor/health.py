"""Whether an engine answers `/health`; it proves that it accepts requests, nothing more."""

from enum import StrEnum
from http import HTTPStatus
from typing import Protocol

import aiohttp

from gatemesh_executor.engine_session import EngineSession

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


class HttpHealth(EngineSession):
    """Asks the engine itself."""

    deadline_s = DEADLINE_S

    async def look(self, base_url: str) -> Health:
        """Ask `/health` once."""
        try:
            async with self.session.get(f"{base_url}/health") as response:
                return Health.READY if response.status == HTTPStatus.OK else Health.NOT_READY
        except aiohttp.ClientConnectorError as error:
            # A name that is not found, or a host that is not reached, says nothing of the engine.
            refused = isinstance(error.os_error, ConnectionRefusedError)
            return Health.REFUSED if refused else Health.NOT_READY
        except (aiohttp.ClientError, OSError, TimeoutError):
            return Health.NOT_READY
