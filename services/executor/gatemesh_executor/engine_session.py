"""HTTP towards an engine: a new connection for each request, with a deadline."""

from types import TracebackType
from typing import Self

import aiohttp


class EngineSession:
    """Holds the HTTP session while its context is open; clients of an engine build on it."""

    deadline_s: float
    """Of one request, all in all."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # vLLM closes idle connections after 5 s; a kept one would break under a rare request.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True),
            timeout=aiohttp.ClientTimeout(total=self.deadline_s),
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

    @property
    def session(self) -> aiohttp.ClientSession:
        """The open session.

        Raises:
            RuntimeError: the context is not open.
        """
        if self._session is None:
            raise RuntimeError(f"{type(self).__name__} is used outside of its context")
        return self._session
