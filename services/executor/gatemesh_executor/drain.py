"""Steps that take an instance out of rotation, end its life, and put it back."""

from gatemesh_common.messages import DrainInstance, EjectInstance, StepName
from gatemesh_executor.backends.base import Ending, Phase
from gatemesh_executor.balancers.base import BalancerRefusedError, BalancerUnavailableError
from gatemesh_executor.health import Health
from gatemesh_executor.instances import Instance
from gatemesh_executor.jobs import Job, Tools, is_other_life, observe

COUNT_EVERY_S = 0.2
TEAR_DOWN_S = 5.0
"""Part of the grace that an engine keeps for itself after SIGTERM."""


async def take_out(tools: Tools, job: Job) -> StepName:
    """Keep new requests away."""
    version = (
        job.command.routing_version if isinstance(job.command, DrainInstance | EjectInstance) else 0
    )
    await tools.rotation.take_out(job.instance, version)
    return "taken_out"


async def confirm_out(tools: Tools, job: Job) -> StepName | None:
    """Wait until nobody routes to the instance.

    Without the word of every agent the command goes on after the deadline; without that of a load
    balancer it does not: what balancers raise repeats the step, and fails the command in the end.
    """
    if not isinstance(job.command, DrainInstance | EjectInstance):
        return None
    confirmed = await tools.rotation.is_confirmed(
        job.instance, job.command.routing_version, tools.limits.confirm_deadline_s
    )
    return "confirmed" if confirmed else "unconfirmed"


async def end_life(tools: Tools, job: Job) -> StepName | None:
    """End the life that the command is about and all of its processes."""
    found = await observe(tools, job.instance)
    if is_other_life(job.command, found):
        # The order is done already; only what its life left behind may still be there.
        if job.command.life_id is not None:
            await tools.backend.stop(job.instance, job.command.life_id, 0.0)
        return None
    grace_s = await fitting_grace_s(tools, job)
    if isinstance(job.command, DrainInstance):
        grace_s -= await let_end(tools, job, grace_s)
    ending = await tools.backend.stop(job.instance, job.command.life_id or found.life_id, grace_s)
    job.killed = job.killed or ending is Ending.KILLED
    if ending is Ending.ABSENT and not isinstance(job.command, DrainInstance):
        return None
    return "killed" if ending is Ending.KILLED else "stopped"


async def fitting_grace_s(tools: Tools, job: Job) -> float:
    """Return the command's grace, or a short one for an engine that serves nobody.

    An engine that is still starting refuses connections and may lose a SIGTERM for good. One that
    was told to stop refuses them too, but may have requests to finish: it keeps the whole grace.
    """
    refused = await tools.health.look(job.instance.base_url) is Health.REFUSED
    # Seen after the look: whoever closed its door for a stop had been told to stop by then.
    if not refused or not await is_ending(tools, job.instance):
        job.serves_nobody = refused
    grace_s = job.command.grace_s
    return min(grace_s, tools.limits.refused_grace_s) if job.serves_nobody else grace_s


async def is_ending(tools: Tools, instance: Instance) -> bool:
    """Return True when the life that runs was told to stop before, by whomever."""
    found = await observe(tools, instance)
    return found.running and found.phase is Phase.STOPPING


async def let_end(tools: Tools, job: Job, grace_s: float) -> float:
    """Wait while load balancers have requests running there; returns what of the grace is gone."""
    begun = tools.pace.now() if job.emptying_since is None else job.emptying_since
    job.emptying_since = begun
    longest_s = max(0.0, grace_s - TEAR_DOWN_S)
    while await still_running(tools, job) and tools.pace.now() - begun < longest_s:
        await tools.pace.sleep(COUNT_EVERY_S)
    return min(tools.pace.now() - begun, grace_s)


async def still_running(tools: Tools, job: Job) -> bool:
    """Return True unless nothing runs there, as far as anybody counts; silence is no count."""
    try:
        return bool(await tools.rotation.sessions(job.instance))
    except (BalancerUnavailableError, BalancerRefusedError):
        return True


async def put_back(tools: Tools, job: Job) -> StepName:
    """Let new requests reach the instance."""
    job.notes.extend(await tools.rotation.put_back(job.instance))
    return "put_back"
