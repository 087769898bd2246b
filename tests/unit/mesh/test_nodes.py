"""A node that does not come up is explained by its own log."""

from pathlib import Path

import pytest

from gatemesh_mesh.nodes import failure, node_port_names


@pytest.mark.parametrize(("state", "words"), [("EXITED", "ended"), ("RUNNING", "not ready within")])
def test_the_failure_carries_the_end_of_the_log(tmp_path: Path, state: str, words: str) -> None:
    """A person need not look for the file."""
    log = tmp_path / "rabbitmq.log"
    log.write_text("".join(f"line {number}\n" for number in range(50)))
    error = failure("rabbitmq", state, 120, log)
    assert words in error.reason
    assert "line 49" in error.reason
    assert "line 1\n" not in error.reason
    assert str(log) in error.cure


def test_only_wanted_nodes_need_ports() -> None:
    """An existing broker needs none of ours."""
    assert node_port_names(broker=False) == ("postgres",)
    assert "amqp" in node_port_names(database=False)
    assert "postgres" not in node_port_names(database=False)
