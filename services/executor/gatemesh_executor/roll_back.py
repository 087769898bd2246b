"""The step that puts the former model version in place."""

import asyncio

from gatemesh_common.messages import RollBackInstance, StepName
from gatemesh_executor.backends.base import RollBackFailedError
from gatemesh_executor.jobs import Job, Tools


async def roll_back(tools: Tools, job: Job) -> StepName | None:
    """Have the next life run the model version before; its name is read anew where it is listed.

    Comes before the life is ended: where there is no way back, nothing has changed.

    Raises:
        RollBackNotOfferedError: no way back is configured.
        RollBackFailedError: it failed, or took too long.
    """
    if not isinstance(job.command, RollBackInstance):
        return None
    seconds = job.command.roll_back_timeout_s
    try:
        async with asyncio.timeout(seconds):
            await tools.backend.roll_back(job.instance)
    except TimeoutError as error:
        raise RollBackFailedError(f"not done in {seconds:g} s") from error
    note = tools.versions.read_again(job.instance)
    if note:
        job.notes.append(note)
    return "rolled_back"
