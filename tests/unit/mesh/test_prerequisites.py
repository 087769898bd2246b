"""A missing package is installed where that is allowed, else the way out is named."""

from pathlib import Path

import pytest

from gatemesh_mesh import prerequisites
from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.prerequisites import ensure_balancers, explain_apt, find_rabbitmq
from gatemesh_mesh.progress import SilentProgress


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


def test_a_balancer_that_is_there_is_not_installed(tmp_path: Path) -> None:
    """Nobody needs rights for what they have."""
    program = tmp_path / "haproxy"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    ensure_balancers(SilentProgress(), {"haproxy": "no-such-package"}, str(tmp_path))


def test_a_balancer_that_cannot_be_had_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tests are skipped with this reason."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MeshError, match="haproxy is not installed") as caught:
        ensure_balancers(SilentProgress(), {"haproxy": "haproxy"}, str(tmp_path))
    assert "go without the tests of load balancers" in caught.value.cure
