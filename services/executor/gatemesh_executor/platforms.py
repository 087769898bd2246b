"""The platform that the settings name: its backend, its instances, and what follows them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from gatemesh_executor.backends.base import EngineBackend, WeightPuller
from gatemesh_executor.backends.kubernetes.api import KubeApi
from gatemesh_executor.backends.kubernetes.backend import KubernetesBackend
from gatemesh_executor.backends.kubernetes.connect import connected, own_namespace
from gatemesh_executor.backends.kubernetes.fleet import PodFleet
from gatemesh_executor.backends.kubernetes.repull import PodWeights
from gatemesh_executor.backends.supervisor import SupervisorBackend
from gatemesh_executor.backends.xmlrpc import UNIX_PREFIX, XmlRpcClient
from gatemesh_executor.balancers.base import Rotation
from gatemesh_executor.balancers.kubernetes import KubernetesService
from gatemesh_executor.dumping import Dumper, LocalDumper, NoDumper
from gatemesh_executor.instances import Fleet, Instance, Instances, load_fleet
from gatemesh_executor.pace import Pace
from gatemesh_executor.settings import ExecutorSettings
from gatemesh_executor.versions import OwnVersions, Versions, VersionsFromFile

LOOPBACK = ("localhost", "127.0.0.1", "::1")


async def for_ever() -> None:
    """Wait until cancelled."""
    await asyncio.Event().wait()


async def at_once() -> None:
    """Wait for nothing."""


def unchanged(rotation: Rotation) -> Rotation:
    """Return the rotation as it is."""
    return rotation


@dataclass(frozen=True)
class Platform:
    """What runs the engines."""

    backend: EngineBackend
    instances: Instances
    """It may change while it is used."""
    versions: Versions = field(default_factory=OwnVersions)
    puller: WeightPuller | None = None
    dumper: Dumper = field(default_factory=NoDumper)
    follow: Callable[[], Awaitable[None]] = for_ever
    """Keeps what is known up to date until cancelled."""
    known: Callable[[], Awaitable[None]] = at_once
    """Returns once the instances are known: before that every command would be refused."""
    balance: Callable[[Rotation], Rotation] = unchanged
    """Adds the platform's own balancer to what routes by the table."""


def is_local(supervisor_url: str) -> bool:
    """Return True when supervisord can only be on this machine."""
    return supervisor_url.startswith(UNIX_PREFIX) or urlsplit(supervisor_url).hostname in LOOPBACK


def supervisor_client(settings: ExecutorSettings) -> XmlRpcClient:
    """Return the client that the settings describe."""
    return XmlRpcClient(
        settings.supervisor_url,
        settings.supervisor_user,
        settings.supervisor_password.get_secret_value(),
        settings.supervisor_deadline_s,
    )


def listed_fleet(settings: ExecutorSettings) -> Fleet:
    """Return what the instances file describes; nothing where instances are discovered.

    Raises:
        SettingsError: the file is missing or wrong.
    """
    if settings.backend == "kubernetes" or settings.instances_file is None:
        return Fleet({}, {})
    return load_fleet(settings.instances_file)


@asynccontextmanager
async def opened_platform(
    settings: ExecutorSettings, instances: dict[str, Instance], pace: Pace
) -> AsyncIterator[Platform]:
    """Give the platform while its connections are open.

    Raises:
        SettingsError: the cluster cannot be reached by these settings.
    """
    if settings.instances_file is not None and settings.backend == "supervisor":
        async with supervisor_client(settings) as client:
            local = is_local(settings.supervisor_url)
            backend = SupervisorBackend(client, instances, settings.grace_s, local=local)
            versions = VersionsFromFile(settings.instances_file, instances)
            dumper = LocalDumper() if local else NoDumper()
            yield Platform(backend, instances, versions, dumper=dumper)
        return
    async with connected(settings.kubeconfig) as connection:
        namespace = own_namespace(settings.namespace)
        api = KubeApi(connection, namespace, settings.kubernetes_deadline_s)
        yield kubernetes_platform(api, settings.delete_after_s, pace)


def kubernetes_platform(api: KubeApi, delete_after_s: float | None, pace: Pace) -> Platform:
    """Return the platform of one namespace."""
    fleet = PodFleet(api)
    backend = KubernetesBackend(api, fleet, delete_after_s, pace)

    def balance(others: Rotation) -> Rotation:
        return KubernetesService(api, fleet, others, pace)

    return Platform(
        backend,
        fleet,
        puller=PodWeights(backend),
        follow=fleet.run,
        known=fleet.until_known,
        balance=balance,
    )
