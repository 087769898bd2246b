"""Gates of other distributions are found by entry point, and only those that are named."""

import logging
from pathlib import Path

import pytest

from gatemesh_agent.plugins import LoggingWatcher, load_gates, settings_by_gate
from gatemesh_common.errors import SettingsError

MODULE = """
def open_gate(request):
    if request.settings.get("list") == "missing":
        raise ValueError("there is no list 'missing'")
    return None

number = 5
"""
POINTS = """
[gatemesh.gates]
sample = sample_gates:open_gate
absent = sample_gates:nobody
number = sample_gates:number
"""


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution that offers gates, as far as Python can tell."""
    (tmp_path / "sample_gates.py").write_text(MODULE)
    folder = tmp_path / "sample_gates-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-gates\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("_installed")
def test_installing_a_gate_changes_nothing() -> None:
    """It has to be named."""
    assert load_gates((), {}, "p").open({}, "") == {}


@pytest.mark.usefixtures("_installed")
def test_a_named_gate_is_loaded_with_its_settings() -> None:
    """It is opened once before the first client, to see that it can be."""
    load_gates(("sample",), {"sample.list": "some"}, "p")
    with pytest.raises(SettingsError, match="'sample' does not start: there is no list 'missing'"):
        load_gates(("sample",), {"sample.list": "missing"}, "p")


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("other", "installed: .*sample"),
        ("absent", r"'absent' \(sample_gates:nobody\) cannot be loaded"),
        ("number", "is not callable"),
    ],
)
def test_a_gate_that_cannot_be_had_stops_the_start(name: str, says: str) -> None:
    """Half guarded is worse than not started."""
    with pytest.raises(SettingsError, match=says):
        load_gates((name,), {}, "p")


@pytest.mark.parametrize("key", ["list", "other.list", "own.", ".x"])
def test_a_setting_of_no_gate_is_a_mistake(key: str) -> None:
    """It would do nothing, unseen."""
    with pytest.raises(SettingsError, match="write gate"):
        settings_by_gate({key: "1"}, ("own",))


def test_settings_belong_to_their_gate() -> None:
    """By their own keys."""
    found = settings_by_gate({"a.x": "1", "a.y.z": "2", "b.x": "3"}, ("a", "b", "c"))
    assert found == {"a": {"x": "1", "y.z": "2"}, "b": {"x": "3"}, "c": {}}


def test_a_fault_is_logged_once_and_without_text(caplog: pytest.LogCaptureFixture) -> None:
    """An exception may carry what a client wrote."""
    watcher = LoggingWatcher()
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            watcher.failed("own", ValueError("secret"))
        watcher.failed("own", KeyError("secret"))
    assert [record.getMessage() for record in caplog.records] == ["gate_failed"] * 2
    assert "secret" not in caplog.text
    assert watcher.clock() <= watcher.clock()
    watcher.spent("own", 0.1)
