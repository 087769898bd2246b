"""The platform that the settings name."""

from pathlib import Path

import pytest

from gatemesh_executor.backends.kubernetes.backend import KubernetesBackend
from gatemesh_executor.backends.supervisor import SupervisorBackend
from gatemesh_executor.balancers.fake import FakeRotation
from gatemesh_executor.balancers.kubernetes import KubernetesService
from gatemesh_executor.instances import Fleet
from gatemesh_executor.pace import Pace
from gatemesh_executor.platforms import (
    is_local,
    kubernetes_platform,
    listed_fleet,
    opened_platform,
)
from gatemesh_executor.settings import ExecutorSettings
from gatemesh_executor.versions import OwnVersions, VersionsFromFile

from .backends.kubernetes.conftest import Script
from .conftest import INSTANCES


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("unix:///run/s.sock", True),
        ("http://127.0.0.1:9001", True),
        ("http://localhost:9001", True),
        ("http://engines.example:9001", False),
    ],
)
def test_process_groups_are_looked_at_only_here(url: str, local: bool) -> None:  # noqa: FBT001
    """Elsewhere the same number is somebody else's process."""
    assert is_local(url) is local


async def test_supervisor_is_the_default() -> None:
    """Its instances are those of the list, and nothing has to be followed."""
    settings = ExecutorSettings(instances_file=Path("instances.toml"))
    listed = dict(INSTANCES)
    async with opened_platform(settings, listed, Pace()) as platform:
        assert isinstance(platform.backend, SupervisorBackend)
        assert platform.instances is listed
        assert isinstance(platform.versions, VersionsFromFile)
        assert platform.puller is None
        rotation = FakeRotation()
        assert platform.balance(rotation) is rotation
        await platform.known()


def test_on_kubernetes_instances_are_discovered() -> None:
    """The list is not read; the fleet takes its place."""
    assert listed_fleet(ExecutorSettings(backend="kubernetes")) == Fleet({}, {})
    platform = kubernetes_platform(Script().api, None, Pace())
    assert isinstance(platform.backend, KubernetesBackend)
    assert platform.instances is platform.backend.fleet
    assert isinstance(platform.versions, OwnVersions)
    assert isinstance(platform.balance(FakeRotation()), KubernetesService)
