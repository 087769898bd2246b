"""Which verdicts of a batch condition A counts, and the decisions about them in order."""

from typing import Any

import pytest

from gatemesh_common.messages import CheckLevel, InstanceState
from gatemesh_health_manager.batch import counted, decide_all
from gatemesh_health_manager.facts import Copies, Facts
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import InstanceRecord

from .samples import NOW, incident, record, verdict


def fleet(about: InstanceRecord) -> Fleet:
    """Return a pool of one instance."""
    return Fleet(Policy(), [PoolRecord("default")], [about])


@pytest.mark.parametrize(
    ("about", "fields", "wanted"),
    [
        pytest.param(record(), {}, 1, id="soft-failure"),
        pytest.param(record(), {"check_level": CheckLevel.L3}, 0, id="another-gate"),
        pytest.param(record(), {"incarnation": 0}, 0, id="earlier-life"),
        pytest.param(record(), {"outcome": "passed"}, 0, id="passed"),
        pytest.param(record(InstanceState.DRAINING), {}, 0, id="out-already"),
        pytest.param(record(incident=incident(status="held")), {}, 0, id="held-already"),
        pytest.param(
            record(incident=incident(status="held", steps=("tell",))), {}, 1, id="only-told"
        ),
        pytest.param(record(evidence_since=NOW), {}, 0, id="answered"),
        pytest.param(record(), {"attribution": "request"}, 0, id="the-requests-own-fault"),
    ],
)
def test_a_window_is_read_only_where_it_can_act(
    about: InstanceRecord, fields: dict[str, Any], wanted: int
) -> None:
    """A flood against an instance that is out costs no reading."""
    found = counted(Policy(), fleet(about), [verdict(**fields)])
    assert sum(len(one.verdicts) for one in found) == wanted


def test_copies_within_a_batch_cost_once() -> None:
    """The second failure of a prompt sees the first one, which came with it."""
    pool = fleet(record())
    twice = [verdict(prompt_fingerprint="p", message_id=str(n)) for n in range(2)]
    first, second = decide_all(pool, twice, {"engine-0": Facts(2, 1)}, Copies(), NOW)
    assert second.record.penalty == pytest.approx(first.record.penalty)
    assert pool.records["engine-0"] is second.record
