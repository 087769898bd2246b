"""Free ports on the loopback address, below the range that outgoing connections use."""

import random
import socket
from collections.abc import Callable, Iterable, Mapping

from gatemesh_mesh.errors import MeshError

LOOPBACK = "127.0.0.1"
FIRST, LAST = 20_000, 29_999
TRIES = 400

IsFree = Callable[[int], bool]
"""Tells whether a port can be bound on the loopback address."""


def is_free(port: int) -> bool:
    """Tell whether nobody listens on the port, on the loopback address or on all of them."""
    for address in (LOOPBACK, "0.0.0.0"):  # noqa: S104 (bound for a moment, never listened on)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # As servers do: a connection in TIME_WAIT does not make the port taken.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                return False
    return True


def choose_ports(
    names: Iterable[str],
    rng: random.Random,
    kept: Mapping[str, int] | None = None,
    free: IsFree = is_free,
) -> dict[str, int]:
    """Give each name a free port of its own; a port in `kept` is kept while it is free.

    Raises:
        MeshError: no free port was found.
    """
    chosen: dict[str, int] = {}
    for name in names:
        before = (kept or {}).get(name)
        if before is not None and before not in chosen.values() and free(before):
            chosen[name] = before
        else:
            chosen[name] = _draw(rng, set(chosen.values()), free)
    return chosen


def _draw(rng: random.Random, taken: set[int], free: IsFree) -> int:
    for _ in range(TRIES):
        port = rng.randint(FIRST, LAST)
        if port not in taken and free(port):
            return port
    raise MeshError(
        f"no free port between {FIRST} and {LAST} after {TRIES} tries",
        "stop programs that listen there, or check that 127.0.0.1 can be bound",
    )


def require_free(port: int, setting: str, free: IsFree = is_free) -> int:
    """Return a port that a person chose.

    Raises:
        MeshError: it is taken.
    """
    if not free(port):
        raise MeshError(
            f"{setting}: port {port} is taken by another program",
            f"choose another {setting}, or leave it out and a free one is found",
        )
    return port
