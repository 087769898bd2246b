"""The statements by which pools are locked; what they do is tested on a real database."""

import pytest
from sqlalchemy.dialects import postgresql

from gatemesh_common.messages import InstanceState
from gatemesh_health_manager.fleet import Fleet, PoolRecord
from gatemesh_health_manager.policy import Policy
from gatemesh_health_manager.record import InstanceRecord
from gatemesh_health_manager.store_fleet import LOCK_POOLS, locking, may_count

from .samples import NOW, at, record, ticket


def test_pools_are_locked_in_one_order() -> None:
    """Two transactions never wait in a circle."""
    for query in (LOCK_POOLS, locking()):
        words = str(query.compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]
        assert "ORDER BY pools.pool FOR UPDATE" in words


@pytest.mark.parametrize(
    ("about", "probed_s", "wanted"),
    [
        pytest.param(record(), -40, True, id="since-a-while"),
        pytest.param(record(), -29, False, id="just-now"),
        pytest.param(record(), -300, False, id="due-by-time-alone"),
        pytest.param(record(InstanceState.DRAINING), -40, False, id="out"),
        pytest.param(record(ticket=ticket()), -40, False, id="asked-already"),
    ],
)
def test_requests_are_counted_only_where_they_decide(
    about: InstanceRecord,
    probed_s: float,
    wanted: bool,  # noqa: FBT001
) -> None:
    """So that a tick reads a few minutes of telemetry at most."""
    fleet = Fleet(Policy(), [PoolRecord("default")], [about])
    assert may_count(about, at(probed_s), fleet, NOW) is wanted
