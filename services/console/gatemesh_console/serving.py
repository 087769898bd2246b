"""The HTTP server, ended by us and not by its own signal handlers."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from gatemesh_common.errors import SettingsError

STOP_GRACE_S = 3
BACKLOG = 512


class Server(uvicorn.Server):
    """A server that leaves signals to the composition root."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take no signal."""
        yield

    def stop(self) -> None:
        """Take no more requests, and let running ones end."""
        self.should_exit = True


def make_server(application: ASGIApp) -> Server:
    """Return a server for an application; it trusts no header about who the client is."""
    return Server(
        uvicorn.Config(
            application,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=STOP_GRACE_S,
        )
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        SettingsError: the address cannot be had.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise SettingsError(
            f"GATEMESH_CONSOLE_HOST, GATEMESH_CONSOLE_PORT: {host}:{port} cannot be bound "
            f"({error.strerror}); set another one"
        ) from error
