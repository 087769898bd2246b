"""An agent from its settings."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gatemesh_agent.routing_store import save_table
from gatemesh_agent.service import (
    known_view,
    only_instances,
    probe_pace,
    routing_path,
    spool_path,
)
from gatemesh_agent.settings import AgentSettings
from gatemesh_common.messages import InstanceState, RoutedInstance, RoutingTable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def settings(folder: Path, **more: Any) -> AgentSettings:
    """Return settings with two instances."""
    instances = {"a": "http://a", "b": "http://b"}
    return AgentSettings.model_validate({"spool_dir": folder, "instances": instances, **more})


def table() -> RoutingTable:
    """Return a stored table that no longer has instance a."""
    instance = RoutedInstance(
        instance_id="b", base_url="http://b2", state=InstanceState.HEALTHY, incarnation=2
    )
    return RoutingTable(timestamp=NOON, pool="default", version=9, instances=(instance,))


def test_the_last_table_comes_before_the_settings(tmp_path: Path) -> None:
    """What the manager said last is nearer the truth."""
    given = settings(tmp_path)
    assert [one.instance_id for one in known_view(given).instances] == ["a", "b"]
    save_table(routing_path(given), table())
    assert known_view(given).version == 9


@pytest.mark.parametrize(
    ("more", "only"),
    [({}, ()), ({"mode": "sidecar", "instances": {"b": "http://b"}}, ("b",))],
)
def test_a_sidecar_serves_one_instance(
    tmp_path: Path, more: dict[str, Any], only: tuple[str, ...]
) -> None:
    """A gateway all of its pool."""
    assert only_instances(settings(tmp_path, **more)) == only


def test_files_are_named_after_the_agent(tmp_path: Path) -> None:
    """Two agents may share a folder."""
    given = settings(tmp_path, id="agent-7")
    assert spool_path(given).name == "spool-agent-7.sqlite3"
    assert routing_path(given).name == "routing-agent-7.json"
    assert probe_pace(given).top_logprobs == 20
