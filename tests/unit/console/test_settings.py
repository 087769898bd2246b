"""Settings have bounds, and their page names every one."""

from pathlib import Path

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_common.settings import ServiceSettings, load_settings
from gatemesh_console.settings import ConsoleSettings

from .conftest import DATABASE

PAGE = Path(__file__).parents[3] / "docs" / "console.md"
OWN = set(ConsoleSettings.model_fields) - set(ServiceSettings.model_fields)


def test_every_setting_is_on_the_page() -> None:
    """Whoever runs a console has only that page."""
    text = PAGE.read_text()
    shared = ("database_url", "database_ca_file")
    named = {f"GATEMESH_{name.upper()}" if name in shared else name.upper() for name in OWN}
    assert [name for name in sorted(named) if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GATEMESH_CONSOLE_PORT", "99999"),
        ("GATEMESH_CONSOLE_ORIGIN", "mesh.test"),
        ("GATEMESH_CONSOLE_DATABASE_ROLE", "x; -c log_statement=none"),
        ("GATEMESH_CONSOLE_WATCH_EVERY_S", "0"),
        ("GATEMESH_DATABASE_URL", "mysql://x"),
    ],
)
def test_a_wrong_value_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """The console does not start with it."""
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=name):
        load_settings(ConsoleSettings)


def test_the_database_is_verified_by_a_named_authority(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As by every other service; what is read there is whom people trust."""
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text("")
    monkeypatch.setenv("GATEMESH_DATABASE_CA_FILE", str(ca_file))
    monkeypatch.setenv("GATEMESH_DATABASE_URL", DATABASE)
    assert "sslmode=verify-full" in load_settings(ConsoleSettings).database_url
    monkeypatch.setenv("GATEMESH_DATABASE_CA_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(SettingsError, match=r"GATEMESH_DATABASE_URL: .*there is no CA file"):
        load_settings(ConsoleSettings)


def test_a_missing_database_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is none that fits everybody."""
    monkeypatch.delenv("GATEMESH_DATABASE_URL", raising=False)
    with pytest.raises(SettingsError, match="GATEMESH_DATABASE_URL: Field required"):
        load_settings(ConsoleSettings)


def test_secrets_are_not_shown() -> None:
    """Settings end up in logs sooner or later."""
    shown = repr(ConsoleSettings(tokens="hush", database_url="postgresql://u:hush@h/d"))
    assert "hush" not in shown


def test_https_is_known_by_the_origin() -> None:
    """Cookies are then sent by HTTPS only."""
    assert ConsoleSettings(origin="https://mesh.test", database_url=DATABASE).is_https
    assert not ConsoleSettings(database_url=DATABASE).is_https
