"""The real models, run by the Python that `./mesh models` fills."""

import json
import os
import subprocess
from typing import Any

import pytest

from gatemesh_mesh import models_env
from gatemesh_mesh.state import state_folder
from gatemesh_mesh.suite import MODELS_VARIABLE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(700)]

GOOD = "The capital of France is Paris, a city on the river Seine that is known for its museums."
SALAD = "river the museums Paris that a known France on capital city is Seine for The its of is"
PAIRS = [
    ["How is bread baked?", "How do you bake bread?"],
    ["How is bread baked?", "The stock market fell sharply today."],
    ["Same", "Same"],
]
PROGRAM = """
import json, sys
from gatemesh_shadow.embed import SentenceModel
from gatemesh_shadow.errors import ModelUnavailableError
from gatemesh_shadow.verifier import VerifierModel

asked = json.load(sys.stdin)
verifier = VerifierModel("", 64, 2)
found = {
    "cosines": SentenceModel("", 8, 2).cosines([tuple(pair) for pair in asked["pairs"]]),
    "scores": verifier.scores(asked["texts"]),
    "alone": verifier.scores(asked["texts"][:1]),
}
try:
    SentenceModel("no/such/model", 8, 1).cosines([("a", "b")])
except ModelUnavailableError as error:
    found["missing"] = str(error)
print(json.dumps(found))
"""


@pytest.fixture(name="figures", scope="module")
def measured_figures() -> dict[str, Any]:
    """Return what the models say of a few texts."""
    folder = state_folder(os.environ, models_env.REPOSITORY)
    if reason := os.environ.get(MODELS_VARIABLE):
        pytest.skip(f"no models: {reason}")
    if not models_env.is_installed(folder):
        pytest.skip("no models: run `./mesh models` once")
    result = subprocess.run(
        [str(models_env.layout_of(folder).python), "-c", PROGRAM],
        input=json.dumps({"pairs": PAIRS, "texts": [GOOD, SALAD, ""]}),
        env={**os.environ, **models_env.environment_of()},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def test_meaning(figures: dict[str, Any]) -> None:
    """A paraphrase is nearer than another topic; equal texts are equal."""
    near, far, same = figures["cosines"]
    assert near > 0.7
    assert far < 0.3
    assert same == pytest.approx(1.0, abs=0.01)


def test_salad_is_harder_to_foretell(figures: dict[str, Any]) -> None:
    """The same words in another order; a batch gives what single texts give."""
    (good, tokens), (salad, _), empty = figures["scores"]
    assert tokens > 10
    assert salad > good + 2
    assert figures["alone"][0][0] == pytest.approx(good, abs=0.01)
    assert empty == [0.0, 0]


def test_a_model_that_is_not_here_is_named(figures: dict[str, Any]) -> None:
    """It is never fetched."""
    assert "no/such/model" in figures["missing"]
