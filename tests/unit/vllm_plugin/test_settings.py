"""What the plugin accepts from the engine's environment."""

from pathlib import Path

import pytest

from gatemesh_vllm_plugin.settings import InvalidSettingError, PluginSettings, read_settings

OUT = "GATEMESH_PLUGIN_OUT"
EVERY = "GATEMESH_PLUGIN_EVERY"


@pytest.mark.parametrize("environment", [{}, {OUT: ""}, {EVERY: "nonsense"}])
def test_without_a_target_there_is_nothing_to_do(environment: dict[str, str]) -> None:
    """Unset means off, whatever else is set."""
    assert read_settings(environment) is None


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({OUT: "/a/b"}, PluginSettings(Path("/a/b"), every=8), id="default"),
        pytest.param({OUT: "/a", EVERY: "1"}, PluginSettings(Path("/a"), every=1), id="each"),
        pytest.param({OUT: "/a", EVERY: "10000"}, PluginSettings(Path("/a"), every=10_000), id="x"),
        pytest.param({OUT: "unix:/s"}, PluginSettings(Path("/s"), is_socket=True), id="socket"),
    ],
)
def test_settings_are_read(environment: dict[str, str], expected: PluginSettings) -> None:
    """A file or a socket, and every how many steps."""
    assert read_settings(environment) == expected


@pytest.mark.parametrize("every", ["0", "10001", "-1", "1.5", "", "²"])
def test_a_wrong_interval_is_named(every: str) -> None:
    """At each limit and past it."""
    with pytest.raises(InvalidSettingError, match=EVERY):
        read_settings({OUT: "/a", EVERY: every})


@pytest.mark.parametrize("out", ["figures.jsonl", "unix:socket"])
def test_a_relative_target_is_named(out: str) -> None:
    """The engine's working folder is nobody's business."""
    with pytest.raises(InvalidSettingError, match=OUT):
        read_settings({OUT: out})
