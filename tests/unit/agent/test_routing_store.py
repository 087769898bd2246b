"""The last routing table on disk."""

from datetime import UTC, datetime
from pathlib import Path

from gatemesh_agent.routing_store import load_table, save_table
from gatemesh_common.messages import RoutingTable

TABLE = RoutingTable(timestamp=datetime(2026, 1, 1, tzinfo=UTC), pool="p", version=7, instances=())


def test_a_table_comes_back(tmp_path: Path) -> None:
    """A restarted agent serves by it."""
    path = tmp_path / "deep" / "routing.json"
    save_table(path, TABLE)
    assert load_table(path, "p") == TABLE


def test_another_pools_table_is_not_taken(tmp_path: Path) -> None:
    """The folder may have been another agent's."""
    save_table(tmp_path / "routing.json", TABLE)
    assert load_table(tmp_path / "routing.json", "q") is None


def test_what_cannot_be_read_is_as_none(tmp_path: Path) -> None:
    """The agent starts all the same."""
    path = tmp_path / "routing.json"
    assert load_table(path, "p") is None
    path.write_text("{")
    assert load_table(path, "p") is None


def test_a_folder_that_refuses_does_not_stop_routing(tmp_path: Path) -> None:
    """It is logged."""
    path = tmp_path / "routing.json"
    path.mkdir()
    save_table(path, TABLE)
    assert load_table(path, "p") is None
