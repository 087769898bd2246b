"""A missing package is installed where that is allowed, else the way out is named."""

from pathlib import Path

import pytest

from gatemesh_mesh import prerequisites
from gatemesh_mesh.prerequisites import explain_apt, find_rabbitmq


@pytest.mark.parametrize(
    ("output", "meaning"),
    [
        ("E: You don't have enough free space in /var/cache/apt/archives/.", "disk is full"),
        ("dpkg: error: No space left on device", "disk is full"),
        ("Err:1 Temporary failure resolving 'x'", "cannot be reached"),
        ("E: Unable to locate package rabbitmq-server", "cannot be reached"),
        ("E: Could not get lock /var/lib/dpkg/lock-frontend.", "another package installation"),
        ("E: dpkg was interrupted, you must manually run", "was interrupted"),
        ("something new", "something new"),
    ],
)
def test_each_failure_is_explained(output: str, meaning: str) -> None:
    """A person reads a reason and a cure, with the setting that makes the package needless."""
    error = explain_apt(["install", "rabbitmq-server"], output, "or set GATEMESH_AMQP_URL")
    assert "rabbitmq-server" in error.reason
    assert meaning in error.reason
    assert error.cure.endswith("or set GATEMESH_AMQP_URL")


def test_every_fault_has_a_meaning_and_a_cure() -> None:
    """The table has no gaps."""
    assert all(meaning and cure for _, meaning, cure in prerequisites.FAULTS)


def test_the_newest_broker_is_taken(tmp_path: Path) -> None:
    """Versions are compared as numbers."""
    for version in ("3.9.1", "3.10.8"):
        (tmp_path / f"rabbitmq_server-{version}" / "sbin").mkdir(parents=True)
    assert find_rabbitmq([str(tmp_path)]) == tmp_path / "rabbitmq_server-3.10.8" / "sbin"
    assert find_rabbitmq([str(tmp_path / "none")]) is None
