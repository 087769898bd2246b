"""Steps that bring a new life up."""

from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import ReplaceInstance, RestartInstance, RollBackInstance, StepName
from gatemesh_executor.backends.base import Observation, Phase, StartFailedError
from gatemesh_executor.health import Health
from gatemesh_executor.jobs import Job, Tools, observe

READY_POLL_S = 0.2
STOP_GRACE_S = 1.0
"""Grace of a life that never became ready: it serves nobody."""
GONE = (Phase.STOPPED, Phase.EXITED, Phase.FAILED)


class StartTimeoutError(GatemeshError):
    """The new life did not answer `/health` in time; it has been stopped again."""


async def start_life(tools: Tools, job: Job) -> StepName:
    """See to it that a life runs; of a replacement, one with weights that were pulled for it.

    Raises:
        StartFailedError, PullFailedError: it cannot be had.
    """
    command = job.command
    if isinstance(command, ReplaceInstance) and tools.puller is not None:
        if not await tools.puller.start_fresh(
            job.instance, command.message_id, command.pull_timeout_s
        ):
            job.notes.append("no way to pull weights configured, cold start only")
    else:
        await tools.backend.start(job.instance)
    return "started"


async def await_ready(tools: Tools, job: Job) -> StepName | None:
    """Wait until the new life answers `/health`.

    Raises:
        StartFailedError: it ended while starting.
        StartTimeoutError: it runs but never answered.
    """
    if not isinstance(job.command, RestartInstance | ReplaceInstance | RollBackInstance):
        return None
    deadline = tools.pace.now() + job.command.start_timeout_s
    while True:
        found = await observe(tools, job.instance)
        if found.running and await tools.health.look(job.instance.base_url) is Health.READY:
            return "ready"
        refuse_an_ended_start(found)
        if tools.pace.now() >= deadline:
            await tools.backend.stop(job.instance, found.life_id, STOP_GRACE_S)
            raise StartTimeoutError(f"no answer in {job.command.start_timeout_s:g} s")
        await tools.pace.sleep(READY_POLL_S)


def refuse_an_ended_start(found: Observation) -> None:
    """Raise StartFailedError when the life has ended."""
    if found.phase not in GONE:
        return
    code = "" if found.exit_code is None else f" with code {found.exit_code}"
    raise StartFailedError(f"{found.phase}{code} while starting")
