"""A worker's side of its link to the supervisor."""

import argparse
import asyncio
import json
import socket
from collections.abc import Sequence
from typing import Self

from gatemesh_agent.worker_share import Worker


def worker_in(arguments: Sequence[str]) -> Worker | None:
    """Return what a command line says of the worker to be; None without a supervisor."""
    parser = argparse.ArgumentParser(prog="python -m gatemesh_agent")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--listen-fd", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--link-fd", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.worker is None:
        return None
    return Worker(given.worker, given.listen_fd, given.link_fd)


class Link:
    """Tells the supervisor that a worker serves, and notices when it is gone."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, worker: Worker) -> Self:
        """Return the link of a worker."""
        return cls(*await asyncio.open_connection(sock=socket.socket(fileno=worker.link_fd)))

    async def ready(self, admin_port: int) -> None:
        """Tell where the worker's metrics are: it serves."""
        self._writer.write(json.dumps({"admin_port": admin_port}).encode() + b"\n")
        await self._writer.drain()

    async def lost(self) -> None:
        """Return when the supervisor is gone."""
        await self._reader.read()

    def close(self) -> None:
        """End it."""
        self._writer.close()
