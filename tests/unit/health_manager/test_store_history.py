"""Rows of history; reading them is tested on a real database."""

import json
from typing import cast

import pytest
from sqlalchemy import RowMapping

from gatemesh_common.messages import CheckLevel, Verdict
from gatemesh_health_manager.facts import prompt_key
from gatemesh_health_manager.history import HistoryError
from gatemesh_health_manager.inputs import Input, InputKind
from gatemesh_health_manager.store_history import batch_of, verdict_of
from gatemesh_health_manager.store_rows import VERDICT_NAMES, verdict_values

from .samples import NOW, at, record, verdict


def row(said: Verdict) -> RowMapping:
    """Return the row that the manager writes."""
    values = dict(zip(VERDICT_NAMES, verdict_values(said, record(), at(5)), strict=True))
    return cast("RowMapping", values | {"details": json.loads(values["details"])})


@pytest.mark.parametrize(
    "said",
    [
        verdict(prompt_fingerprint="p", attribution="request", hard=True),
        verdict(CheckLevel.L5, details={"ticket_id": "t", "failed": ["x"]}, outcome="skipped"),
    ],
    ids=["fingerprint", "by-hand"],
)
def test_what_deciding_needs_of_a_verdict_comes_back(said: Verdict) -> None:
    """Field by field; a prompt without a fingerprint stays the request's own."""
    again = verdict_of(row(said))
    assert prompt_key(again) == prompt_key(said)
    for name in ("message_id", "timestamp", "check_level", "outcome", "hard", "details"):
        assert getattr(again, name) == getattr(said, name)
    assert (again.attribution, again.incarnation) == (said.attribution, 1)


def test_a_batch_must_be_whole() -> None:
    """Verdicts that were deleted since would give other decisions."""
    given = Input(at(5), InputKind.VERDICTS, "v", ("default",), {"count": 1}, {})
    stored = {at(5): [row(verdict())]}
    assert len(batch_of(given, stored)) == 1
    with pytest.raises(HistoryError, match=r"of a batch of 1 verdicts .* 0 are stored"):
        batch_of(given, {})
    other = Input(NOW, InputKind.TICK, "v", ("default",), {}, {})
    assert batch_of(other, stored) == []
