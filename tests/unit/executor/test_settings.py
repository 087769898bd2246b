"""The executor's settings."""

from pathlib import Path

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_common.settings import ServiceSettings, load_settings
from gatemesh_executor.settings import ExecutorSettings


def test_only_the_instances_file_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else has a default that works beside a stock supervisord."""
    monkeypatch.setenv("GATEMESH_EXECUTOR_INSTANCES_FILE", "instances.toml")
    settings = load_settings(ExecutorSettings)
    assert settings.supervisor_url == "unix:///var/run/supervisor.sock"
    assert (settings.prefetch, settings.grace_s) == (32, 60.0)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GATEMESH_EXECUTOR_SUPERVISOR_URL", "unix://relative.sock"),
        ("GATEMESH_EXECUTOR_POLL_S", "0.6"),
        ("GATEMESH_EXECUTOR_PREFETCH", "0"),
    ],
)
def test_a_wrong_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """The operator knows which variable to change."""
    monkeypatch.setenv("GATEMESH_EXECUTOR_INSTANCES_FILE", "instances.toml")
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError, match=variable):
        load_settings(ExecutorSettings)


def test_a_missing_file_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without instances there is nothing to act on."""
    monkeypatch.delenv("GATEMESH_EXECUTOR_INSTANCES_FILE", raising=False)
    with pytest.raises(SettingsError, match="GATEMESH_EXECUTOR_INSTANCES_FILE"):
        load_settings(ExecutorSettings)


def test_the_password_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs and tracebacks hold settings at times."""
    monkeypatch.setenv("GATEMESH_EXECUTOR_INSTANCES_FILE", "instances.toml")
    monkeypatch.setenv("GATEMESH_EXECUTOR_SUPERVISOR_PASSWORD", "hunter2")
    assert "hunter2" not in repr(load_settings(ExecutorSettings))


def test_the_page_names_every_setting() -> None:
    """docs/executor.md is complete."""
    page = (Path(__file__).parents[3] / "docs" / "executor.md").read_text(encoding="utf-8")
    own = ExecutorSettings.model_fields.keys() - ServiceSettings.model_fields.keys()
    assert [name for name in sorted(own) if f"`{name.upper()}`" not in page] == []
