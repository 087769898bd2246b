"""What may happen to the load balancers that stand before the engines."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from tests.contract.executor.balancer_rigs import HaproxyRig, NginxRig, RealRig
from tests.faults.acting import VICTIM, accuse, engine_of, is_repaired, use_instances
from tests.faults.isolation import drained_in_order, steps_of, told_not_isolated
from tests.faults.scenario import Play
from tests.faults.traffic import Traffic

from gatemesh_executor.balancers.config import Listing
from gatemesh_executor.balancers.upstream_file import servers_of

NEIGHBOUR = "engine-0"
UNAVAILABLE = "balancer_unavailable"
TRIES = 3
ANSWERS = 5


async def lose_socket(it: Play) -> None:
    """HAProxy's socket is dead until the drain has failed, and is there again for the rest."""
    async with deaf_haproxy(it) as rig:
        await accuse(it)
        await told_not_isolated(it, "drain", UNAVAILABLE)
        rig.come_back()
        await is_repaired(it)


async def lose_socket_at_a_proof(it: Play) -> None:
    """The same where the instance is ejected, since nothing it says can be believed."""
    async with deaf_haproxy(it) as rig:
        it.site.spoil(VICTIM, "nan")
        await told_not_isolated(it, "eject", UNAVAILABLE)
        rig.come_back()
        await is_repaired(it)


@asynccontextmanager
async def deaf_haproxy(it: Play) -> AsyncIterator[HaproxyRig]:
    """Have a HAProxy that does not hear; in the end it hears, and both engines are in."""
    rig = HaproxyRig(addresses(it))
    async with before_engines(it, rig) as through:
        rig.go_away()
        yield rig
        await serves_again(it, through)
        neighbour, victim = [await rig.balancer.look(server) for server in rig.servers]
        assert not neighbour.out
        assert not victim.out


async def break_reload(it: Play) -> None:
    """Nginx refuses its configuration while an instance is to be drained, then it is mended."""
    rig = NginxRig(addresses(it))
    async with before_engines(it, rig) as through:
        pid, before = it.site.fleet.pid_of(VICTIM), tries(it)
        rig.extra.write_text("no such directive;\n")
        await accuse(it)
        await it.reach(lambda: tries(it) >= before + TRIES, "a drain that is tried again")
        assert steps_of(it, "drain") == []
        assert it.site.fleet.pid_of(VICTIM) == pid
        rig.extra.write_text("")
        await is_repaired(it)
        assert drained_in_order(it)
        await serves_again(it, through)
        servers = servers_of(rig.upstream_file.read_text()).values()
        assert [down for down, _ in servers] == [False, False]
    assert through.errors == []


def tries(it: Play) -> float:
    """Return how often the executor had to try again what a balancer did not do."""
    name = 'gatemesh_retried_total{error="BalancerUnavailableError"}'
    lines = [line for line in it.site.metrics("executor") if line.startswith(name)]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


async def serves_again(it: Play, through: Traffic) -> None:
    """Wait until more of those who come through the balancer are answered."""
    answered = through.answered
    await it.reach(lambda: through.answered >= answered + ANSWERS, "answers through the balancer")


def addresses(it: Play) -> tuple[str, str]:
    """Return host and port of the two engines that a balancer stands before."""
    first, second = (engine_of(it, name).base_url for name in (NEIGHBOUR, VICTIM))
    return urlsplit(first).netloc, urlsplit(second).netloc


@asynccontextmanager
async def before_engines(it: Play, rig: HaproxyRig | NginxRig) -> AsyncIterator[Traffic]:
    """Have a balancer stand before two engines, and clients come through it, too."""
    file = it.site.plan.instances_file
    listed = file.read_text()
    try:
        rig.start()
        async with asking_through(it, rig) as through:
            await use_instances(it, with_balancer(listed, rig))
            await serves_again(it, through)
            yield through
    finally:
        await use_instances(it, listed)
        rig.close()


@asynccontextmanager
async def asking_through(it: Play, rig: RealRig) -> AsyncIterator[Traffic]:
    """Have clients ask through a balancer; what was begun is answered first."""
    through, stopped = Traffic(rig.url, f"{it.ledger.word}-through"), asyncio.Event()
    asking = asyncio.create_task(through.run(stopped))
    try:
        yield through
    finally:
        stopped.set()
        await asking


def with_balancer(instances: str, rig: RealRig) -> str:
    """Return the list of instances with the balancer, and the two that it stands before."""
    for instance, listing in zip((NEIGHBOUR, VICTIM), rig.listings(), strict=True):
        line = f'instance_id = "{instance}"\n'
        assert line in instances
        instances = instances.replace(line, f"{line}balancers = [{inline(listing)}]\n")
    return f"{instances}\n{rig.table()}"


def inline(listing: Listing) -> str:
    """Return a listing as it stands in the file."""
    fields: dict[str, Any] = listing.model_dump(exclude_none=True)
    return "{ " + ", ".join(f'{name} = "{text}"' for name, text in fields.items()) + " }"
