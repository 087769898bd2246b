"""Models that packages bring along."""

from pathlib import Path

import pytest

from gatemesh_shadow import packaged
from gatemesh_shadow.errors import ModelUnavailableError


def test_installed() -> None:
    """All of them, or not."""
    assert packaged.is_installed("json", "asyncio")
    assert not packaged.is_installed("json", "no_such_module_here")


def test_a_setting_wins() -> None:
    """A folder, a name, or a GGUF file."""
    assert packaged.embedding_model("some/model") == "some/model"
    assert packaged.verifier_model("some/model") == ("some/model", None)
    assert packaged.verifier_model("/models/tiny.gguf") == ("/models", "tiny.gguf")


def test_a_missing_package_is_named() -> None:
    """With what to do."""
    with pytest.raises(ModelUnavailableError, match=r"no-such.*gatemesh\[models\]"):
        packaged.folder_of("no_such_package_here", "no-such")


def test_the_folder_of_a_package() -> None:
    """Found without importing it."""
    assert packaged.folder_of("gatemesh_shadow", "gatemesh") == Path(packaged.__file__).parent
