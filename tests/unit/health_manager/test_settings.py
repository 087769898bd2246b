"""What the manager reads from its environment."""

from pathlib import Path

import pytest

from gatemesh_common.errors import SettingsError
from gatemesh_common.settings import ServiceSettings, load_settings
from gatemesh_health_manager.lanes import LARGEST_BATCH
from gatemesh_health_manager.settings import HealthManagerSettings


def test_the_database_is_the_only_thing_it_must_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else has a default."""
    monkeypatch.setenv("GATEMESH_DATABASE_URL", "postgresql://u:p@127.0.0.1:5432/gatemesh")
    monkeypatch.setenv("GATEMESH_HEALTH_MANAGER_POLICY_FILE", "policy.toml")
    settings = load_settings(HealthManagerSettings)
    assert settings.policy_file == Path("policy.toml")
    assert (settings.prefetch, settings.tick_s, settings.heartbeat_s) == (500, 1, 2)
    assert settings.verdict_prefetch > 2 * LARGEST_BATCH
    assert "p@" not in repr(settings)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("GATEMESH_DATABASE_URL", "mysql://u:p@127.0.0.1/gatemesh"),
        ("GATEMESH_HEALTH_MANAGER_PREFETCH", "0"),
        ("GATEMESH_HEALTH_MANAGER_TICK_S", "-1"),
        ("GATEMESH_HEALTH_MANAGER_ADMIN_PORT", "99999"),
    ],
)
def test_a_wrong_value_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, text: str) -> None:
    """By its variable; the value is not repeated, it may be a secret."""
    monkeypatch.setenv("GATEMESH_DATABASE_URL", "postgresql://u:p@127.0.0.1:5432/gatemesh")
    monkeypatch.setenv(variable, text)
    with pytest.raises(SettingsError) as caught:
        load_settings(HealthManagerSettings)
    assert variable in str(caught.value)
    assert text not in str(caught.value) or text == "0"


def test_a_missing_database_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text says which variable to set."""
    monkeypatch.delenv("GATEMESH_DATABASE_URL", raising=False)
    with pytest.raises(SettingsError, match="GATEMESH_DATABASE_URL"):
        load_settings(HealthManagerSettings)


def test_the_page_names_every_setting() -> None:
    """docs/policy.md is complete."""
    page = (Path(__file__).parents[3] / "docs" / "policy.md").read_text(encoding="utf-8")
    shared = {*ServiceSettings.model_fields, "database_url", "database_ca_file"}
    own = {name for name in HealthManagerSettings.model_fields if name not in shared}
    assert [name for name in sorted(own) if f"\n| `{name.upper()}` |" not in page] == []


def test_the_database_is_verified_by_a_named_authority(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever connects takes the one address."""
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text("")
    monkeypatch.setenv("GATEMESH_DATABASE_URL", "postgresql://u:p@h/gatemesh")
    monkeypatch.setenv("GATEMESH_DATABASE_CA_FILE", str(ca_file))
    assert "sslmode=verify-full" in load_settings(HealthManagerSettings).database_url
    monkeypatch.setenv("GATEMESH_DATABASE_CA_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(SettingsError, match=r"GATEMESH_DATABASE_URL: .*there is no CA file"):
        load_settings(HealthManagerSettings)
