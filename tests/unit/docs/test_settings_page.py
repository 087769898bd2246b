"""The page of settings is what the code says."""

import pytest
from deploy.docs.settings_page import (
    PAGE,
    Setting,
    page,
    settings_classes,
    settings_of,
    variable_of,
)
from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from gatemesh_common.settings import ServiceSettings

CLASSES = settings_classes()


def test_the_page_is_up_to_date() -> None:
    """Mend it with `python -m deploy.docs.settings_page`."""
    assert PAGE.read_text() == page()


@pytest.mark.parametrize("service", CLASSES)
def test_every_setting_has_its_row(service: str) -> None:
    """Also one without a line of description: that is what fails here."""
    found = CLASSES[service]
    shared = set(ServiceSettings.model_fields)
    wanted = {
        variable_of(found, name, field)
        for name, field in found.model_fields.items()
        if name not in shared
    }
    assert {one.variable for one in settings_of(found)} == wanted


class Example(ServiceSettings):
    """Settings as services have them."""

    model_config = SettingsConfigDict(env_prefix="GATEMESH_EXAMPLE_")

    wait_s: float = Field(default=2.0, gt=0, le=60)
    """Longest wait,
    in seconds."""

    key: SecretStr = SecretStr("hush")
    """A secret."""

    on: bool = True
    """A switch."""


def test_a_setting_is_told_with_its_bounds_and_no_secret() -> None:
    """As an operator writes it."""
    assert list(settings_of(Example)) == [
        Setting("GATEMESH_EXAMPLE_WAIT_S", "`2`", "> 0, ≤ 60", "Longest wait, in seconds."),
        Setting("GATEMESH_EXAMPLE_KEY", "", "", "A secret."),
        Setting("GATEMESH_EXAMPLE_ON", "`true`", "", "A switch."),
    ]
