"""The environment, read once, with errors that name the variable."""

from pathlib import Path
from urllib.parse import quote_plus

import pytest
from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from gatemesh_common.errors import SettingsError
from gatemesh_common.settings import DatabaseSettings, ServiceSettings, load_settings


class SampleSettings(ServiceSettings):
    """Settings of a service that is not there."""

    model_config = SettingsConfigDict(env_prefix="GATEMESH_SAMPLE_")

    depth: int = Field(ge=1)


def test_values_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared ones by their own name, others under the service's prefix."""
    monkeypatch.setenv("GATEMESH_SAMPLE_DEPTH", "3")
    monkeypatch.setenv("GATEMESH_AMQP_URL", "amqp://u:secret@127.0.0.1:5672/v")
    settings = load_settings(SampleSettings)
    assert (settings.depth, settings.log_level) == (3, "INFO")
    assert settings.amqp_url.endswith("/v")
    assert "secret" not in repr(settings)


def test_every_fault_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One try, one list; values are not repeated."""
    monkeypatch.delenv("GATEMESH_SAMPLE_DEPTH", raising=False)
    monkeypatch.setenv("GATEMESH_AMQP_URL", "http://u:secret@127.0.0.1/")
    monkeypatch.setenv("GATEMESH_LOG_LEVEL", "LOUD")
    with pytest.raises(SettingsError) as caught:
        load_settings(SampleSettings)
    text = str(caught.value)
    for variable in ("GATEMESH_SAMPLE_DEPTH", "GATEMESH_AMQP_URL", "GATEMESH_LOG_LEVEL"):
        assert variable in text
    assert "secret" not in text


def test_a_default_that_does_not_fit_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever named authorities and left the address out is told which variable to set."""
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text("")
    monkeypatch.setenv("GATEMESH_SAMPLE_DEPTH", "3")
    monkeypatch.delenv("GATEMESH_AMQP_URL", raising=False)
    monkeypatch.setenv("GATEMESH_AMQP_CA_FILE", str(ca_file))
    with pytest.raises(SettingsError, match="\n  GATEMESH_AMQP_URL: "):
        load_settings(SampleSettings)


def test_a_database_is_proven_by_a_named_authority(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For every service that has one; it has no default, and its password is not shown."""
    monkeypatch.delenv("GATEMESH_DATABASE_URL", raising=False)
    with pytest.raises(SettingsError, match="GATEMESH_DATABASE_URL: Field required"):
        load_settings(DatabaseSettings)
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text("")
    monkeypatch.setenv("GATEMESH_DATABASE_URL", "postgresql://u:hush@h/gatemesh")
    monkeypatch.setenv("GATEMESH_DATABASE_CA_FILE", str(ca_file))
    settings = load_settings(DatabaseSettings)
    assert settings.database_url.endswith(
        f"sslmode=verify-full&sslrootcert={quote_plus(str(ca_file))}"
    )
    assert "hush" not in repr(settings)


class PairSettings(ServiceSettings):
    """Settings that must fit each other."""

    @model_validator(mode="after")
    def _never_fit(self) -> "PairSettings":
        raise ValueError("GATEMESH_A must be below GATEMESH_B")


def test_a_fault_of_several_settings_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the name of a variable that does not exist."""
    monkeypatch.delenv("GATEMESH_AMQP_URL", raising=False)
    with pytest.raises(SettingsError) as caught:
        load_settings(PairSettings)
    assert str(caught.value).endswith("\n  GATEMESH_A must be below GATEMESH_B")


def test_settings_are_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read once, passed down."""
    monkeypatch.setenv("GATEMESH_SAMPLE_DEPTH", "3")
    settings = load_settings(SampleSettings)
    with pytest.raises(ValueError, match="frozen"):
        settings.depth = 4  # type: ignore[misc]


def test_a_file_of_authorities_becomes_a_part_of_the_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever connects takes the one address; a file without `amqps://` would be of no use."""
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text("")
    monkeypatch.setenv("GATEMESH_SAMPLE_DEPTH", "3")
    monkeypatch.setenv("GATEMESH_AMQP_CA_FILE", str(ca_file))
    monkeypatch.setenv("GATEMESH_AMQP_URL", "amqps://u:secret@h/")
    assert "cafile=" in load_settings(SampleSettings).amqp_url
    monkeypatch.setenv("GATEMESH_AMQP_URL", "amqp://u:secret@h/")
    with pytest.raises(SettingsError, match="must begin with amqps://") as caught:
        load_settings(SampleSettings)
    assert "secret" not in str(caught.value)
    monkeypatch.delenv("GATEMESH_AMQP_URL")
    with pytest.raises(SettingsError, match="must begin with amqps://"):
        load_settings(SampleSettings)
