"""The fleet page and its chart."""

import json
from datetime import timedelta

from gatemesh_console.fleet import by_pool, columns

from .conftest import HOSTILE, NOW, Office


async def test_the_page_shows_pools_gates_and_instances(office: Office) -> None:
    """With what is wrong in plain sight, escaped."""
    office.desk.scores.look([{"instance_id": "engine/<0>", "score": 100.0}])
    office.desk.scores.look([{"instance_id": "engine/<0>", "score": 40.0}])
    text = (await office.client.get("/")).text
    for part in ("fleet brake", "1.00 %", "B (hard proof)", "<polyline", 'class="badge healthy"'):
        assert part in text
    assert HOSTILE not in text
    assert 'href="/instances/engine/%3C0%3E"' in text


async def test_a_script_gets_the_part_that_changes(office: Office) -> None:
    """Not the whole page in its middle."""
    text = (await office.client.get("/", **{"hx-request": "true"})).text
    assert "<html" not in text
    assert "fleet brake" in text


async def test_an_instance_has_a_page_with_its_actions(office: Office) -> None:
    """Whatever its name."""
    answer = await office.client.get("/instances/engine/<0>")
    assert answer.status == 200
    assert "action=restart&amp;instance_id=engine/%3C0%3E" in answer.text
    assert HOSTILE not in answer.text
    assert (await office.client.get("/instances/none")).status == 404


async def test_filters_reach_the_query(office: Office) -> None:
    """As values, never as text of it."""
    await office.client.get("/?pool=c'hat&state=healthy")
    _, values = next(one for one in office.store.asked if "state_since" in one[0])
    assert (values["pool"], values["state"], values["after_0"]) == ("c'hat", "healthy", None)


async def test_the_chart_gets_columns(office: Office) -> None:
    """One per gate, over the same moments."""
    answer = await office.client.get("/gates.json")
    assert json.loads(answer.text) == {"gates": ["L1"], "data": [[NOW.timestamp()], [4]]}


def test_a_gate_without_failures_at_a_moment_counts_zero() -> None:
    """Lines need a value at each moment."""
    rows = [
        {"at": NOW, "check_level": "L1", "failed": 2},
        {"at": NOW + timedelta(minutes=1), "check_level": "L3", "failed": 5},
    ]
    assert columns(rows)["data"] == [[NOW.timestamp(), NOW.timestamp() + 60], [2, 0], [0, 5]]
    assert columns([]) == {"gates": [], "data": [[]]}


def test_states_are_counted_by_pool() -> None:
    """A pool that has none in a state does not name it."""
    rows = [
        {"pool": "a", "state": "healthy", "instances": 2},
        {"pool": "a", "state": "suspect", "instances": 1},
        {"pool": "b", "state": "healthy", "instances": 3},
    ]
    assert by_pool(rows) == {"a": {"healthy": 2, "suspect": 1}, "b": {"healthy": 3}}
