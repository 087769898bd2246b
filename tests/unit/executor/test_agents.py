"""When a routing table counts as applied."""

import pytest

from gatemesh_common.messages import RoutingApplied
from gatemesh_executor.balancers.agents import HEARTBEAT_S, AgentRouting, Heard, all_applied

from .conftest import INSTANCES, START, Time

ENGINE = INSTANCES["engine-0"]


@pytest.mark.parametrize(
    ("agents", "applied"),
    [
        pytest.param({}, False, id="nobody-heard"),
        pytest.param({"a": Heard(7, 100)}, True, id="all"),
        pytest.param({"a": Heard(8, 100)}, True, id="a-later-one"),
        pytest.param({"a": Heard(7, 100), "b": Heard(6, 94)}, False, id="one-behind"),
        pytest.param({"a": Heard(7, 100), "b": Heard(6, 93.9)}, True, id="one-silent"),
        pytest.param({"a": Heard(7, 93.9)}, False, id="all-silent"),
    ],
)
def test_all_who_spoke_lately_must_have_it(agents: dict[str, Heard], applied: bool) -> None:  # noqa: FBT001
    """Within six seconds; silence is no consent."""
    assert all_applied(agents, 7, 100.0, 6.0) is applied


def word(agent_id: str, version: int, pool: str = "default") -> RoutingApplied:
    """Return an agent's word."""
    return RoutingApplied(timestamp=START, agent_id=agent_id, pool=pool, version=version)


@pytest.fixture
def time() -> Time:
    """Give time that passes by sleeping."""
    return Time()


@pytest.fixture
def routing(time: Time) -> AgentRouting:
    """Give one that has listened for long."""
    routing = AgentRouting(6.0, time.pace)
    routing.listen()
    time.elapsed_s += HEARTBEAT_S
    return routing


async def test_confirmed_once_the_last_agent_speaks(routing: AgentRouting, time: Time) -> None:
    """The wait ends with its word."""
    routing.hear(word("a", 7))
    routing.hear(word("b", 6))
    time.on_sleep.append(lambda: routing.hear(word("b", 7)) if time.elapsed_s > 4 else None)
    assert await routing.is_confirmed(ENGINE, 7, 3.0)
    assert 4 < time.elapsed_s < 4.2


async def test_unconfirmed_at_the_deadline(routing: AgentRouting, time: Time) -> None:
    """A drain does not wait for ever."""
    routing.hear(word("a", 6))
    assert not await routing.is_confirmed(ENGINE, 7, 3.0)
    assert time.elapsed_s == pytest.approx(HEARTBEAT_S + 3.0, abs=0.1)


async def test_agents_of_other_pools_do_not_count(routing: AgentRouting) -> None:
    """They route elsewhere."""
    routing.hear(word("a", 7))
    routing.hear(word("b", 1, pool="other"))
    assert await routing.is_confirmed(ENGINE, 7, 3.0)
    assert not await routing.is_confirmed(ENGINE.model_copy(update={"pool": "other"}), 7, 1.0)


async def test_right_after_the_start_nothing_is_confirmed(time: Time) -> None:
    """Some agents have not been heard yet."""
    routing = AgentRouting(6.0, time.pace)
    routing.hear(word("a", 7))
    assert not await routing.is_confirmed(ENGINE, 7, 1.0)
    routing.listen()
    assert await routing.is_confirmed(ENGINE, 7, 3.0)
    assert time.elapsed_s >= HEARTBEAT_S


async def test_agents_that_are_gone_are_forgotten(routing: AgentRouting, time: Time) -> None:
    """Else every restarted agent would stay in memory."""
    routing.hear(word("old", 7))
    time.elapsed_s += 7
    routing.hear(word("new", 7))
    assert list(routing._pools["default"]) == ["new"]
