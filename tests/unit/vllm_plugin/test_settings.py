"""What the plugin accepts from the engine's environment."""

import pytest

from gatemesh_vllm_plugin.settings import (
    InvalidSettingError,
    PluginSettings,
    Target,
    TargetKind,
    read_settings,
    read_target,
)

OUT = "GATEMESH_PLUGIN_OUT"
EVERY = "GATEMESH_PLUGIN_EVERY"


@pytest.mark.parametrize("environment", [{}, {OUT: ""}, {EVERY: "nonsense"}])
def test_without_a_target_there_is_nothing_to_do(environment: dict[str, str]) -> None:
    """Unset means off, whatever else is set."""
    assert read_settings(environment) is None


A = Target(TargetKind.FILE, "/a")
SOCKET = Target(TargetKind.UNIX, "/s")
PORT = Target(TargetKind.UDP, "10.0.0.1", 65_535)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({OUT: "/a"}, PluginSettings((A,), every=8), id="default"),
        pytest.param({OUT: "/a", EVERY: "1"}, PluginSettings((A,), every=1), id="each"),
        pytest.param({OUT: "/a", EVERY: "10000"}, PluginSettings((A,), every=10_000), id="seldom"),
        pytest.param({OUT: "unix:/s"}, PluginSettings((SOCKET,)), id="socket"),
        pytest.param({OUT: "udp:10.0.0.1:65535"}, PluginSettings((PORT,)), id="port"),
        pytest.param({OUT: "unix:/s, /a"}, PluginSettings((SOCKET, A)), id="two"),
    ],
)
def test_settings_are_read(environment: dict[str, str], expected: PluginSettings) -> None:
    """Files, sockets or ports, and every how many steps."""
    assert read_settings(environment) == expected


def test_a_target_says_how_to_reach_it() -> None:
    """As sockets take it."""
    assert PORT.socket_address == ("10.0.0.1", 65_535)
    assert SOCKET.socket_address == "/s"


@pytest.mark.parametrize("out", ["udp:10.0.0.1", "udp::9", "udp:h:0", "udp:h:65536", "udp:h:x"])
def test_a_wrong_port_is_named(out: str) -> None:
    """At each limit and past it."""
    with pytest.raises(InvalidSettingError, match="udp:HOST:PORT"):
        read_target(out)


@pytest.mark.parametrize("every", ["0", "10001", "-1", "1.5", "", "²"])
def test_a_wrong_interval_is_named(every: str) -> None:
    """At each limit and past it."""
    with pytest.raises(InvalidSettingError, match=EVERY):
        read_settings({OUT: "/a", EVERY: every})


@pytest.mark.parametrize("out", ["figures.jsonl", "unix:socket", "/a,b", "/a,"])
def test_a_relative_target_is_named(out: str) -> None:
    """The engine's working folder is nobody's business."""
    with pytest.raises(InvalidSettingError, match=OUT):
        read_settings({OUT: out})
