"""The socket that figures come in by."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from gatemesh_agent.figures_feed import (
    LONGEST_PATH_BYTES,
    FiguresAddress,
    FiguresFeed,
    read_address,
)
from gatemesh_common.errors import SettingsError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/run/figures.sock", FiguresAddress(Path("/run/figures.sock"))),
        ("unix:/run/figures.sock", FiguresAddress(Path("/run/figures.sock"))),
        ("udp:127.0.0.1:9200", FiguresAddress(None, "127.0.0.1", 9200)),
        ("udp:10.1.2.3:65535", FiguresAddress(None, "10.1.2.3", 65_535)),
    ],
)
def test_addresses_are_read(text: str, expected: FiguresAddress) -> None:
    """As the plugin writes them."""
    assert read_address(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "figures.sock",
        "/" + "x" * LONGEST_PATH_BYTES,
        "udp:127.0.0.1",
        "udp:127.0.0.1:0",
        "udp:8.8.8.8:9200",
        "udp:localhost:9200",
    ],
)
def test_what_cannot_be_an_address_is_refused(text: str) -> None:
    """Too long for a socket, no port, or open to the world."""
    with pytest.raises(ValueError, match=r"."):
        read_address(text)


async def received(address: FiguresAddress, send: Callable[[], None]) -> bytes:
    """What a feed hands on after a packet was sent."""
    got: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    feed = FiguresFeed(address, got.set_result)
    feed.open()
    try:
        send()
        async with asyncio.timeout(5):
            return await got
    finally:
        feed.close()
        feed.close()


async def test_a_unix_socket_is_made_and_removed(tmp_path: Path) -> None:
    """One that was left over is replaced."""
    path = tmp_path / "run" / "s"
    path.parent.mkdir()
    path.touch()

    def send() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"line\n", str(path))

    assert await received(FiguresAddress(path), send) == b"line\n"
    assert not path.exists()


async def test_a_port_receives(free_udp_port: int) -> None:
    """Where engine and agent share a network but no folder."""

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"line\n", ("127.0.0.1", free_udp_port))

    address = FiguresAddress(None, "127.0.0.1", free_udp_port)
    assert await received(address, send) == b"line\n"


async def test_a_taken_port_is_named(free_udp_port: int) -> None:
    """The variable to change."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", free_udp_port))
        feed = FiguresFeed(FiguresAddress(None, "127.0.0.1", free_udp_port), lambda _: None)
        with pytest.raises(SettingsError, match="GATEMESH_AGENT_PLUGIN_SOCKET"):
            feed.open()


@pytest.fixture
def free_udp_port() -> int:
    """A port that nobody has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
