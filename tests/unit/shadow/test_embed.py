"""Cosines by language; the model itself is tested where it is installed."""

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


@pytest.mark.skipif(not IS_INSTALLED, reason="needs gatemesh[models]")
def test_meaning() -> None:
    """A paraphrase is nearer than another topic; equal texts are equal."""
    model = SentenceModel("", 8, 1)
    pairs = [
        ("How is bread baked?", "How do you bake bread?"),
        ("How is bread baked?", "The stock market fell sharply today."),
        ("Same", "Same"),
    ]
    near, far, same = model.cosines(pairs)
    assert near > 0.7
    assert far < 0.3
    assert same == pytest.approx(1.0, abs=0.01)


@pytest.mark.skipif(not IS_INSTALLED, reason="needs gatemesh[models]")
def test_a_model_that_is_not_here_is_named() -> None:
    """It is never fetched."""
    with pytest.raises(ModelUnavailableError, match="no/such/model"):
        SentenceModel("no/such/model", 8, 1).cosines([("a", "b")])
