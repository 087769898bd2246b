"""Receives the engine plugin's datagrams, over a Unix socket or a UDP port."""

import asyncio
import ipaddress
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gatemesh_common.errors import SettingsError

LONGEST_PACKET_BYTES = 65_535
BUFFER_BYTES = 2**20
PACKETS_AT_ONCE = 64
"""Read in one go, so that a flood of figures does not hold up answers."""
LONGEST_PATH_BYTES = 100
"""Linux takes 107; a little is left for what a state folder is renamed to."""


@dataclass(frozen=True, slots=True)
class FiguresAddress:
    """Where figures are received."""

    path: Path | None
    """Of a Unix socket; None for a UDP port."""
    host: str = ""
    port: int = 0


def read_address(text: str) -> FiguresAddress:
    """Read `/absolute/path`, `unix:/absolute/path` or `udp:HOST:PORT`.

    Raises:
        ValueError: it is none of these, too long, or open to anybody.
    """
    if text.startswith("udp:"):
        host, _, port = text.removeprefix("udp:").rpartition(":")
        if not port.isascii() or not port.isdigit() or not 0 < int(port) < 2**16:
            raise ValueError("write udp:HOST:PORT")
        if not ipaddress.ip_address(host).is_private:
            raise ValueError("the host must be a loopback or private IP address")
        return FiguresAddress(None, host, int(port))
    path = Path(text.removeprefix("unix:"))
    if not path.is_absolute():
        raise ValueError("write /absolute/path or udp:HOST:PORT")
    if len(os.fsencode(path)) > LONGEST_PATH_BYTES:
        raise ValueError(f"a socket's path must not be longer than {LONGEST_PATH_BYTES} bytes")
    return FiguresAddress(path)


class FiguresFeed:
    """An open socket whose datagrams are handed on as they come."""

    def __init__(self, address: FiguresAddress, take: Callable[[bytes], None]) -> None:
        self._address = address
        self._take = take
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """Begin to receive in the running loop.

        Raises:
            SettingsError: the address cannot be had.
        """
        try:
            self._socket = bound(self._address)
        except OSError as error:
            raise SettingsError(
                f"GATEMESH_AGENT_PLUGIN_SOCKET cannot be opened ({error.strerror}); set another"
            ) from error
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._read)

    def close(self) -> None:
        """Receive no more; a Unix socket is removed."""
        if self._socket is None:
            return
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()
        self._socket = None
        if self._address.path:
            self._address.path.unlink(missing_ok=True)

    def _read(self) -> None:
        with suppress(BlockingIOError):
            for _ in range(PACKETS_AT_ONCE if self._socket else 0):
                assert self._socket is not None  # noqa: S101 - the range is empty without one
                self._take(self._socket.recv(LONGEST_PACKET_BYTES))


def bound(address: FiguresAddress) -> socket.socket:
    """Return a socket that receives at the address; one that was left over there is replaced."""
    path = address.path
    opened = socket.socket(socket.AF_UNIX if path else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        opened.setblocking(False)  # noqa: FBT003
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        if path is None:
            opened.bind((address.host, address.port))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            opened.bind(str(path))
            # The engine may run as another user of our group.
            path.chmod(0o660)
    except OSError:
        opened.close()
        raise
    return opened
