"""The server is ended by us, and an address that cannot be had is told."""

import signal

import pytest
from starlette.applications import Starlette

from gatemesh_common.errors import SettingsError
from gatemesh_console.serving import listen, make_server


def test_signals_stay_as_they_are() -> None:
    """The composition root handles them."""
    server = make_server(Starlette())
    before = signal.getsignal(signal.SIGTERM)
    with server.capture_signals():
        assert signal.getsignal(signal.SIGTERM) is before
    server.stop()
    assert server.should_exit


def test_a_port_that_is_taken_is_named() -> None:
    """And how to choose another one."""
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"GATEMESH_CONSOLE_PORT: 127.0.0.1:{port}"):
            listen("127.0.0.1", port)
