"""Steps that take an instance out of rotation, end its life, and put it back."""

from gatemesh_common.messages import DrainInstance, EjectInstance, StepName
from gatemesh_executor.backends.base import Ending
from gatemesh_executor.health import Health
from gatemesh_executor.jobs import Job, Tools, is_other_life, observe


async def take_out(tools: Tools, job: Job) -> StepName:
    """Keep new requests away."""
    await tools.balancer.take_out(job.instance)
    return "taken_out"


async def confirm_out(tools: Tools, job: Job) -> StepName | None:
    """Wait until nobody routes to the instance; past the deadline the command goes on."""
    if not isinstance(job.command, DrainInstance | EjectInstance):
        return None
    confirmed = await tools.balancer.is_confirmed(
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
    ending = await tools.backend.stop(job.instance, job.command.life_id or found.life_id, grace_s)
    job.killed = job.killed or ending is Ending.KILLED
    if ending is Ending.ABSENT and not isinstance(job.command, DrainInstance):
        return None
    return "killed" if ending is Ending.KILLED else "stopped"


async def fitting_grace_s(tools: Tools, job: Job) -> float:
    """Return the command's grace, or a short one for an engine that serves nobody.

    An engine that is still starting refuses connections and may lose a SIGTERM for good.
    """
    refused = await tools.health.look(job.instance.base_url) is Health.REFUSED
    grace_s = job.command.grace_s
    return min(grace_s, tools.limits.refused_grace_s) if refused else grace_s


async def put_back(tools: Tools, job: Job) -> StepName:
    """Let new requests reach the instance."""
    await tools.balancer.put_back(job.instance)
    return "put_back"
