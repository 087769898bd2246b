"""Looking at an engine's `/health`; the looks themselves are tested on real sockets."""

import socket

import pytest

from gatemesh_executor.health import Health, HttpHealth


async def test_it_is_used_inside_its_context() -> None:
    """A connection pool that nobody closes would leak."""
    with pytest.raises(RuntimeError, match="context"):
        await HttpHealth().look("http://engine-0:8000")


def test_its_answers_are_a_closed_list() -> None:
    """Steps tell refused from not ready."""
    assert set(Health) == {Health.READY, Health.NOT_READY, Health.REFUSED}


async def test_a_name_that_is_not_found_is_no_refusal() -> None:
    """Names fail for a moment; streams of an engine that serves must keep their grace."""
    async with HttpHealth() as health:
        assert await health.look("http://no-such-engine.invalid:8000") is Health.NOT_READY


async def test_a_port_without_a_listener_refuses() -> None:
    """Nobody is served there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    async with HttpHealth() as health:
        assert await health.look(f"http://127.0.0.1:{port}") is Health.REFUSED
