"""What one of several workers keeps to."""

import pytest

from gatemesh_agent.keys import ApiKey, Limits
from gatemesh_agent.settings import AgentSettings
from gatemesh_agent.worker_share import keys_of, settings_of, whole_part_of, worker_id


def test_a_worker_is_an_agent_of_its_own_to_the_mesh() -> None:
    """Its files are named after it, and its admin port is nobody's business outside."""
    settings = AgentSettings.model_validate({"id": "edge", "workers": 4, "port": 81})
    own = settings_of(settings, 2)
    assert own.id == worker_id("edge", 2) == "edge-w2"
    assert (own.admin_host, own.admin_port, own.port) == ("127.0.0.1", 0, 81)


def test_what_an_agent_may_cost_is_parted() -> None:
    """So that four workers ask engines and broker for no more than one did."""
    given = {
        "workers": 4,
        "attribution_parallel": 4,
        "attribution_per_minute": 60,
        "shadow_per_s": 20,
        "spool_max_messages": 1000,
        "rescue_per_minute": 600,
    }
    own = settings_of(AgentSettings.model_validate(given), 0)
    assert (own.attribution_parallel, own.attribution_per_minute) == (1, 15)
    assert (own.shadow_per_s, own.spool_max_messages) == (5, 250)
    assert own.rescue_per_minute == 150


@pytest.mark.parametrize(("whole", "workers", "part"), [(0, 4, 0), (1, 4, 1), (9, 4, 3), (8, 4, 2)])
def test_what_is_allowed_at_all_is_allowed_to_each(whole: int, workers: int, part: int) -> None:
    """Nothing stays nothing."""
    assert whole_part_of(whole, workers) == part


def test_limits_of_keys_are_parted() -> None:
    """A key without limits has none in any worker."""
    keys = {b"a": ApiKey("a", b"a", Limits(100, 0)), b"b": ApiKey("b", b"b", Limits())}
    assert keys_of(keys, 4)[b"a"].limits == Limits(25, 0)
    assert keys_of(keys, 4)[b"b"].limits == Limits()
    assert keys_of(keys, 1) is keys
