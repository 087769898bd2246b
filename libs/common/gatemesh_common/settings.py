"""What every service reads from its environment, once, in `__main__`."""

from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from gatemesh_common.errors import SettingsError
from gatemesh_common.invalid import misfits_of, place_words
from gatemesh_common.secured import secured_broker, secured_database


class ServiceSettings(BaseSettings):
    """Settings that all services share; a service adds its own under its own prefix."""

    model_config = SettingsConfigDict(frozen=True, populate_by_name=True, extra="ignore")

    amqp_ca_file: Path | None = Field(default=None, validation_alias="GATEMESH_AMQP_CA_FILE")
    """PEM file of the authorities that a broker at `amqps://` must be certified by."""

    amqp_url: str = Field(
        default="amqp://guest:guest@127.0.0.1:5672/",
        validate_default=True,
        validation_alias="GATEMESH_AMQP_URL",
        pattern=r"^amqps?://",
        repr=False,
    )
    """Broker address, `amqp://user:password@host:port/vhost`; `amqps://` is encrypted."""

    log_level: str = Field(
        default="INFO",
        validation_alias="GATEMESH_LOG_LEVEL",
        pattern=r"^(DEBUG|INFO|WARNING|ERROR)$",
    )
    """Least severe level that is logged."""

    publish_deadline_s: float = Field(
        default=5.0, gt=0, le=60, validation_alias="GATEMESH_PUBLISH_DEADLINE_S"
    )
    """Longest wait for the broker's confirmation of one message, in seconds."""

    admin_host: str = Field(default="127.0.0.1", validation_alias="GATEMESH_ADMIN_HOST")
    """Address on which metrics, liveness and readiness listen."""

    traces_endpoint: str = Field(
        default="", validation_alias="GATEMESH_TRACES_ENDPOINT", pattern=r"^(https?://.+)?$"
    )
    """Where spans go: OTLP over HTTP, `http://collector:4318/v1/traces`; empty turns them off."""

    @field_validator("amqp_url")
    @classmethod
    def _secure(cls, url: str, info: ValidationInfo) -> str:
        return secured_broker(url, info.data.get("amqp_ca_file"))


class DatabaseSettings(ServiceSettings):
    """Settings of a service that works with the database."""

    database_ca_file: Path | None = Field(
        default=None, validation_alias="GATEMESH_DATABASE_CA_FILE"
    )
    """PEM file of the authorities that the database must be certified by."""

    database_url: str = Field(
        validation_alias="GATEMESH_DATABASE_URL",
        pattern=r"^postgres(ql)?(\+psycopg)?://",
        repr=False,
    )
    """Database address, `postgresql://user:password@host:port/database`."""

    @field_validator("database_url")
    @classmethod
    def _secure_database(cls, url: str, info: ValidationInfo) -> str:
        return secured_database(url, info.data.get("database_ca_file"))


SettingsT = TypeVar("SettingsT", bound=ServiceSettings)


def load_settings(settings_class: type[SettingsT]) -> SettingsT:
    """Read the environment.

    Raises:
        SettingsError: a variable is missing or out of bounds; the text names each one.
    """
    try:
        return settings_class()
    except ValidationError as error:
        raise SettingsError(describe_faults(settings_class, error)) from None


def describe_faults(settings_class: type[ServiceSettings], error: ValidationError) -> str:
    """Name every faulty variable and what it must be; never repeat its value."""
    prefix = str(settings_class.model_config.get("env_prefix", ""))
    lines = []
    for place, message in misfits_of(error):
        name = place_words(place)
        field = settings_class.model_fields.get(name)
        # A default that does not fit what was set is named by its field.
        known = str(field.validation_alias) if field and field.validation_alias else name
        variable = known if known.startswith("GATEMESH_") else f"{prefix}{known}".upper()
        # A fault of several settings together has no place; its text names them.
        lines.append(f"{variable}: {message}" if name else message)
    return "cannot start, settings are wrong; set these environment variables:\n  " + "\n  ".join(
        lines
    )
