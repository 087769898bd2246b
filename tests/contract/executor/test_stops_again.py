"""A stop of an engine that is ending already, under a real supervisord."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from gatemesh_common.clock import utc_now
from gatemesh_common.messages import RestartInstance
from gatemesh_executor.backends.supervisor import pid_of
from gatemesh_executor.backends.xmlrpc import XmlRpcClient
from gatemesh_executor.balancers.fake import FakeRotation
from gatemesh_executor.drain import end_life
from gatemesh_executor.health import Health, HttpHealth
from gatemesh_executor.jobs import Job, Limits, Tools

from .conftest import PASSWORD, USER, Supervisord
from .test_backends import QUICK, backend_of, instances_of, look, until

pytestmark = pytest.mark.integration


@pytest.fixture
async def client(supervisord: Supervisord) -> AsyncIterator[XmlRpcClient]:
    """Give a client of this test's supervisord."""
    async with XmlRpcClient(supervisord.url, USER, PASSWORD, 5.0) as client:
        yield client


async def test_a_stop_that_comes_again_cuts_no_request(
    supervisord: Supervisord, client: XmlRpcClient
) -> None:
    """Its door is closed since the first stop, and what runs inside gets the whole grace."""
    supervisord.start({"e": f"{supervisord.command('--drain-s', '2')}\n{QUICK}"})
    backend, instance = backend_of(client, "e"), instances_of("e")["e"]
    await backend.start(instance)
    life_id = (await look(backend, "e")).life_id
    await until((supervisord.folder / f"ready-{pid_of(life_id)}").exists)
    wait = False
    supervisord.call("supervisor.stopProcess", "e", wait)
    async with HttpHealth() as health:
        assert await health.look(instance.base_url) is Health.REFUSED
        tools = Tools(backend, FakeRotation(), health, Limits(refused_grace_s=0.2))
        job = Job(restart_of(life_id), instance)
        assert await end_life(tools, job) == "stopped"
    assert not job.killed


def restart_of(life_id: str | None) -> RestartInstance:
    """Return a restart by hand of one life."""
    now = utc_now()
    return RestartInstance(
        timestamp=now,
        instance_id="e",
        incarnation=1,
        fence=1,
        life_id=life_id,
        grace_s=30.0,
        expires_at=now + timedelta(minutes=1),
    )
