"""Ports are free, distinct, and stay what they were where they can."""

import random
import socket

import pytest

from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.ports import FIRST, LAST, choose_ports, is_free, require_free


def everything(_: int) -> bool:
    """Every port is free."""
    return True


def test_each_name_gets_a_port_of_its_own() -> None:
    """Two servers never meet on one port."""
    ports = choose_ports(map(str, range(200)), random.Random(1), free=everything)
    assert len(set(ports.values())) == 200
    assert all(FIRST <= port <= LAST for port in ports.values())


def test_a_kept_port_is_kept_while_it_is_free() -> None:
    """Addresses that people have noted stay valid."""
    kept = {"a": 21_000, "b": 21_001}
    ports = choose_ports("ab", random.Random(1), kept, free=lambda port: port != 21_001)
    assert ports["a"] == 21_000
    assert ports["b"] != 21_001


def test_a_port_is_not_kept_twice() -> None:
    """A damaged record does not give two servers one port."""
    ports = choose_ports("ab", random.Random(1), {"a": 21_000, "b": 21_000}, free=everything)
    assert ports["a"] != ports["b"]


def test_no_free_port_is_an_error_with_a_cure() -> None:
    """A person on a full machine learns what is wrong."""
    with pytest.raises(MeshError, match="no free port"):
        choose_ports("a", random.Random(1), free=lambda _: False)


def test_a_listener_makes_a_port_taken() -> None:
    """A server on the standard port is never disturbed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
    assert is_free(port)


def test_a_chosen_port_that_is_taken_is_named() -> None:
    """The person who chose it learns which setting to change."""
    with pytest.raises(MeshError, match="--agent-port: port 8000 is taken"):
        require_free(8000, "--agent-port", free=lambda _: False)
    assert require_free(8000, "--agent-port", free=everything) == 8000
