"""XML-RPC to supervisord without blocking: Unix socket or TCP, every call with a deadline."""

from base64 import b64encode
from types import TracebackType
from typing import Any, Self
from xmlrpc.client import Fault, dumps, loads

import aiohttp

from gatemesh_common.errors import SettingsError
from gatemesh_executor.backends.base import BackendUnavailableError

UNIX_PREFIX = "unix://"
UNAUTHORIZED = 401
SHUTDOWN_STATE = 6
"""Fault of a supervisord that is going down."""


def login_header(user: str, password: str) -> dict[str, str]:
    """Return the header of basic authentication; empty without a user."""
    login = b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {login}"} if user else {}


class XmlRpcClient:
    """Calls methods of one XML-RPC server; keeps its connections open."""

    def __init__(self, url: str, user: str, password: str, deadline_s: float) -> None:
        unix = url.startswith(UNIX_PREFIX)
        self._socket_path = url.removeprefix(UNIX_PREFIX) if unix else None
        self._address = "http://localhost/RPC2" if unix else f"{url.rstrip('/')}/RPC2"
        self._headers = {"Content-Type": "text/xml", **login_header(user, password)}
        self._timeout = aiohttp.ClientTimeout(total=deadline_s)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
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

    async def call(self, method: str, *arguments: Any) -> Any:
        """Return the server's answer.

        Raises:
            Fault: the server's own refusal, with its number.
            BackendUnavailableError: no answer in time, or it is going down.
            SettingsError: user name or password are wrong.
        """
        body = dumps(arguments, method)
        try:
            text = await self._post(body)
            (answer,), _ = loads(text)
        except Fault as fault:
            if fault.faultCode == SHUTDOWN_STATE:
                raise BackendUnavailableError("supervisord is shutting down") from fault
            raise
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise BackendUnavailableError(
                f"supervisord did not answer {method}: {type(error).__name__}"
            ) from error
        return answer

    async def _post(self, body: str) -> str:
        async with self._open().post(self._address, data=body, headers=self._headers) as response:
            if response.status == UNAUTHORIZED:
                raise SettingsError(
                    "supervisord refuses the login; set GATEMESH_EXECUTOR_SUPERVISOR_USER and "
                    "GATEMESH_EXECUTOR_SUPERVISOR_PASSWORD as in its configuration"
                )
            response.raise_for_status()
            return await response.text()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = (
                aiohttp.UnixConnector(self._socket_path)
                if self._socket_path
                else aiohttp.TCPConnector()
            )
            self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout)
        return self._session
