"""Sockets of several workers on one port."""

import pytest

from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.workers import listeners
from gatemesh_common.errors import SettingsError


def test_all_workers_listen_on_one_port() -> None:
    """A free one that the first of them took."""
    opened = listeners("127.0.0.1", 0, 3)
    try:
        ports = {each.getsockname()[1] for each in opened}
        assert len(opened) == 3
        assert len(ports) == 1
    finally:
        for each in opened:
            each.close()


def test_an_address_of_somebody_else_is_named() -> None:
    """With the way out."""
    with pytest.raises(SettingsError, match="GATEMESH_AGENT_PORT"):
        listeners("192.0.2.1", 0, 2)


def test_a_plugins_socket_is_for_one_process() -> None:
    """Said before the agent starts, with the way out."""
    with pytest.raises(ValueError, match="GATEMESH_AGENT_WORKERS=1"):
        AgentSettings.model_validate({"workers": 2, "plugin_socket": "/tmp/x.sock"})


def test_as_many_workers_as_cores() -> None:
    """Those that this process may use."""
    assert AgentSettings.model_validate({"workers": 0}).worker_count >= 1
    assert AgentSettings.model_validate({"workers": 3}).worker_count == 3
