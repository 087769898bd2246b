"""Which verdicts are worth reading a window for; the reading is tested on a real database."""

from typing import Any

import pytest

from gatemesh_common.messages import CheckLevel, InstanceState
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import InstanceRecord
from gatemesh_health_manager.store_verdicts import counted, window_query

from .samples import NOW, POLICY, at, incident, record, verdict

RULE = POLICY.condition_a


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
        pytest.param(record(evidence_since=NOW), {}, 0, id="answered"),
        pytest.param(record(), {"attribution": "request"}, 0, id="the-requests-own-fault"),
    ],
)
def test_a_window_is_read_only_where_it_can_act(
    about: InstanceRecord, fields: dict[str, Any], wanted: int
) -> None:
    """A flood against an instance that is out costs no reading."""
    found = counted(Policy(), fleet(about), [verdict(**fields)])
    assert len(found.get("default", [])) == wanted


def test_a_window_reaches_as_far_as_its_verdicts_need() -> None:
    """A minute before the first and after the last, and not into answered evidence."""
    fresh = [verdict(timestamp=at(s)) for s in (-100, -70)]
    query = window_query(RULE, fleet(record()), fresh, NOW)
    assert (query["since"], query["until"]) == ([at(-160)], [at(-10)])
    answered = fleet(record(evidence_since=at(-120)))
    assert window_query(RULE, answered, fresh, NOW)["since"] > [at(-120)]
