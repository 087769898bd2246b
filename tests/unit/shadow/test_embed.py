"""Cosines by language; the model itself is tested in tests/integration/shadow."""

import importlib.util

import pytest
from tests.unit.shadow.test_answering import embedder_of

from gatemesh_shadow.embed import MODULES, Embedder, SentenceModel
from gatemesh_shadow.errors import ModelUnavailableError

IS_INSTALLED = all(importlib.util.find_spec(module) for module in MODULES)


async def test_languages_have_their_model() -> None:
    """None where no model knows them; a star stands for all others."""
    english = embedder_of(0.5)
    assert english.knows("en")
    assert not english.knows("zh")
    assert await english.cosine("en", "a", "b") == 0.5
    assert await english.cosine("zh", "a", "b") is None
    both = Embedder({**english._models, "*": embedder_of(0.7, "zh")._models["zh"]})
    assert await both.cosine("zh", "a", "b") == 0.7


@pytest.mark.skipif(IS_INSTALLED, reason="sentence-transformers is here")
def test_missing_libraries_are_named() -> None:
    """With what to install."""
    with pytest.raises(ModelUnavailableError, match=r"gatemesh\[models\]"):
        SentenceModel("", 8, 1).cosines([("a", "b")])
