"""Which models are used."""

import pytest
from tests.unit.shadow.test_embed import IS_INSTALLED

from gatemesh_common.errors import SettingsError
from gatemesh_shadow import models
from gatemesh_shadow.errors import ModelUnavailableError
from gatemesh_shadow.models import open_models
from gatemesh_shadow.settings import ShadowSettings


def test_off_is_off() -> None:
    """Whatever is installed."""
    found = open_models(ShadowSettings(embedding="off", verifier="off"))
    assert found.labels() == {"embedding": False, "verifier": False}


@pytest.mark.skipif(IS_INSTALLED, reason="the models are here")
def test_what_is_missing_is_done_without() -> None:
    """The replica score needs no model."""
    assert open_models(ShadowSettings()).labels() == {"embedding": False, "verifier": False}


@pytest.mark.skipif(IS_INSTALLED, reason="the models are here")
def test_a_named_model_must_be_usable() -> None:
    """Who names one wants it; the variable is told."""
    with pytest.raises(SettingsError, match="GATEMESH_SHADOW_EMBEDDING_MODEL"):
        open_models(ShadowSettings(embedding_model="some/model"))
    with pytest.raises(SettingsError, match="GATEMESH_SHADOW_VERIFIER_MODEL"):
        open_models(ShadowSettings(verifier_model="some/model"))


def test_loading_goes_on_after_a_failure() -> None:
    """What cannot be loaded is left to who needs it first."""
    loaded: list[int] = []

    def fail() -> None:
        raise ModelUnavailableError("gone")

    models.Models(None, None, (fail, lambda: loaded.append(1))).load()
    assert loaded == [1]


def test_a_missing_module_is_named() -> None:
    """By its name."""
    with pytest.raises(ModelUnavailableError, match="no_such_module_here"):
        models._require(["json", "no_such_module_here"])
