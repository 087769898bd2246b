"""The shadow's benchmark, without an engine and without models."""

import json
from typing import Any

import pytest
from benchmarks.shadow import Recorded, auc, made_pairs, recorded_of, report_rows

from gatemesh_common.messages import Decoding
from gatemesh_shadow.scores import Figures


def row(**more: Any) -> dict[str, Any]:
    """A row of a corpus."""
    choice = {"token_ids": [5, 6], "logprobs": {"content": [{"logprob": -1.0}, {"logprob": None}]}}
    body = {"prompt_token_ids": [1, 2], "choices": [choice]}
    given = {"variant": "v", "mode": "greedy", "status": 200, "stream": False}
    return {**given, "body": json.dumps(body), **more}


def test_a_row_is_read() -> None:
    """Tokens and the instance's own figures."""
    assert recorded_of(row()) == Recorded("v", (1, 2), (5, 6), (-1.0, None), Decoding.GREEDY)


@pytest.mark.parametrize("more", [{"status": 400}, {"stream": True}])
def test_other_rows_are_left_out(more: dict[str, Any]) -> None:
    """Refusals and streams."""
    assert recorded_of(row(**more)) is None


def test_auc() -> None:
    """All higher, all lower, all equal."""
    assert auc([1.0, 2.0], [3.0]) == 1.0
    assert auc([1.0, 2.0], [0.0]) == 0.0
    assert auc([1.0], [1.0]) == 0.5


def test_report() -> None:
    """Clean answers pass under limits learnt from them; damaged ones are caught."""
    good = Figures(24, 0.5, 0.0, 0.02, 0.0, 0.1)
    bad = Figures(24, 0.5, 0.3, 0.4, 0.3, 2.0)
    found = {
        ("clean", Decoding.GREEDY): [good] * 20,
        ("noise", Decoding.GREEDY): [bad] * 5,
    }
    clean, noise = report_rows(found)
    assert (clean["caught_calibrated"], clean["auc"]) == (0.0, 0.5)
    assert (noise["caught_calibrated"], noise["auc"]) == (1.0, 1.0)
    assert noise["answers_until_drift"] < clean["answers_until_drift"]


def test_made_pairs() -> None:
    """As many as asked, no two alike."""
    pairs = made_pairs(5)
    assert len({text for _, *both in pairs for text in both}) == 10
