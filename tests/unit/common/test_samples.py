"""Samples for the shadow, and shared baselines."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from gatemesh_common.samples import Baseline, BaselineEntry, ShadowSample, Sketch, any_script
from gatemesh_common.words import Decoding

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_a_sample_goes_to_its_pools_readers() -> None:
    """Whichever instance it came from."""
    sample = ShadowSample(
        timestamp=NOON,
        instance_id="engine-0",
        pool="chat",
        agent_id="a",
        request_id="r",
        path="/v1/chat/completions",
        request={},
        text="",
    )
    assert sample.key() == "sample.v1.chat"
    with pytest.raises(ValidationError, match="path"):
        ShadowSample.model_validate(sample.model_dump() | {"path": "/etc/passwd"})


def test_sketches_keep_their_bins_as_numbers() -> None:
    """JSON has only text for keys."""
    sketch = Sketch(
        metric="m", decoding=Decoding.GREEDY, script="latin", width=0.1, bins={3: 2, -1: 1}
    )
    assert Sketch.model_validate_json(sketch.model_dump_json()) == sketch


def test_a_baseline_has_no_negative_spread() -> None:
    """It divides."""
    with pytest.raises(ValidationError, match="mad"):
        BaselineEntry(
            metric="m", decoding=Decoding.GREEDY, script="latin", count=1, median=0.0, mad=-1.0
        )
    with pytest.raises(ValidationError, match="version"):
        Baseline(timestamp=NOON, pool="chat", model_version="m", version=0)


ENTRY: dict[str, Any] = {
    "metric": "m",
    "decoding": "greedy",
    "script": "latin",
    "count": 1,
    "median": 0.0,
    "mad": 0.1,
}


@pytest.mark.parametrize(
    "absurd",
    [
        {"median": math.nan},
        {"median": -1e308},
        {"mad": math.inf},
        {"count": 2**62},
        {"quantiles": [1.0, math.nan]},
        {"quantiles": [2.0, 1.0]},
    ],
)
def test_a_baseline_is_finite_and_in_order(absurd: dict[str, Any]) -> None:
    """An agent that measured by another would fail every answer, or none."""
    fine = BaselineEntry.model_validate({**ENTRY, "quantiles": [1.0, 1.0, 2.0]})
    assert fine.quantiles == (1.0, 1.0, 2.0)
    with pytest.raises(ValidationError, match=next(iter(absurd))):
        BaselineEntry.model_validate(ENTRY | absurd)


@pytest.mark.parametrize(
    "absurd",
    [
        {"width": 1e308},
        {"width": math.inf},
        {"width": 5e-324},
        {"bins": {"1": -1}},
        {"bins": {"1": 10**400}},
        {"bins": {str(10**30): 1}},
    ],
)
def test_a_sketch_can_be_reckoned_with(absurd: dict[str, Any]) -> None:
    """The manager adds it to what it knows, and must not choke on it."""
    fields = {"metric": "m", "decoding": "greedy", "script": "latin", "width": 0.1}
    assert Sketch.model_validate(fields).width == 0.1
    with pytest.raises(ValidationError, match=next(iter(absurd))):
        Sketch.model_validate(fields | absurd)


@pytest.mark.parametrize(("script", "name"), [("latin", "any"), ("han~warm", "any~warm")])
def test_all_scripts_together_keep_the_band(script: str, name: str) -> None:
    """Answers of different temperatures are never one kind."""
    assert any_script(script) == name
