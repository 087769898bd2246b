"""Steps that give an engine fresh weights: pulled, verified, scanned, and only then swapped in."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gatemesh_common.messages import ReplaceInstance, StepName
from gatemesh_executor.instances import Weights
from gatemesh_executor.jobs import Job, Tools
from gatemesh_executor.weights.folders import WeightsFolder, remove, told_as_failure
from gatemesh_executor.weights.manifest import WeightsRefusedError
from gatemesh_executor.weights.pull import (
    PullFailedError,
    PullOrder,
    fill_in,
    pull_environment,
    run_pull,
)

STOP_GRACE_S = 1.0
MOST_NOTED_SIGNS = 3


def place_of(job: Job, weights: Weights) -> WeightsFolder:
    """Return the folder as this command sees it."""
    return WeightsFolder(weights.folder, job.command.message_id)


@asynccontextmanager
async def hold_folder(tools: Tools, job: Job) -> AsyncIterator[None]:
    """Keep other commands away from the folder while this one replaces it."""
    weights = job.instance.weights
    if weights is None or not isinstance(job.command, ReplaceInstance):
        yield
        return
    async with tools.weights.locks[weights.folder]:
        yield


async def pull_weights(tools: Tools, job: Job) -> StepName | None:
    """Fetch the files into a fresh folder beside the present one, unless that is done.

    Raises:
        DiskFullError: a second copy does not fit.
        PullFailedError: the command failed or took too long.
    """
    weights = job.instance.weights
    if weights is None:
        if tools.puller is None:
            job.notes.append("no weights configured, cold start only")
        return None
    if not weights.pull:
        job.notes.append("no pull command configured, nothing was pulled")
        return None
    place = place_of(job, weights)
    if not place.is_swapped() and not place.fresh.exists():
        await _pull(tools, job, weights, place)
    return "pulled"


async def _pull(tools: Tools, job: Job, weights: Weights, place: WeightsFolder) -> None:
    version, seconds = job.instance.model_version, weights.timeout_s
    if isinstance(job.command, ReplaceInstance):
        seconds = min(seconds, job.command.pull_timeout_s)
    with told_as_failure():
        folder = await asyncio.to_thread(place.begin)
        await asyncio.to_thread(place.need_room, weights.least_free_bytes)
    environment = pull_environment(tools.weights.environment, weights.environment, folder, version)
    argv = fill_in(weights.pull, folder, version)
    try:
        await run_pull(PullOrder(argv, folder, place.log, environment, seconds))
    except PullFailedError:
        # What it got so far may be what fills the disk.
        await asyncio.to_thread(remove, place.part)
        raise
    with told_as_failure():
        place.finish_pull()


def folder_to_check(job: Job, weights: Weights) -> Path | None:
    """Return the files that still have to prove themselves; None when they have."""
    if not weights.pull:
        return weights.folder
    place = place_of(job, weights)
    return None if place.is_swapped() else place.fresh


async def verify_weights(tools: Tools, job: Job) -> StepName | None:
    """Compare every file with the manifest.

    Raises:
        WeightsRefusedError: a file is missing, extra or wrong; nothing runs then.
    """
    weights = job.instance.weights
    if weights is None:
        return None
    folder = folder_to_check(job, weights)
    manifest = None if folder is None else weights.manifest_in(folder)
    if folder is not None and manifest is None:
        job.notes.append("no manifest configured, nothing was verified")
        return None
    if folder is not None and manifest is not None:
        ignored = (*weights.ignored, *_own_name(manifest, folder))
        try:
            await tools.weights.check.verify(folder, manifest, ignored)
        except WeightsRefusedError:
            await _stay_stopped(tools, job, weights)
            raise
    return "verified"


async def scan_weights(tools: Tools, job: Job) -> StepName | None:
    """Look at every number of the tensors; odd ones are noted, broken ones refused.

    Raises:
        WeightsRefusedError: a file is corrupt or holds NaN or infinity; nothing runs then.
    """
    weights = job.instance.weights
    if weights is None:
        return None
    folder = folder_to_check(job, weights)
    if folder is not None:
        try:
            signs = await tools.weights.check.scan(folder)
        except WeightsRefusedError:
            await _stay_stopped(tools, job, weights)
            raise
        job.notes.extend(signs[:MOST_NOTED_SIGNS])
    return "scanned"


async def swap_weights(tools: Tools, job: Job) -> StepName | None:
    """Put the proven files in place of the old ones; a life begun meanwhile has to end."""
    weights = job.instance.weights
    if weights is None or not weights.pull:
        return None
    place = place_of(job, weights)
    if not place.is_swapped():
        # It would serve from the old files, and the start would leave it running.
        await tools.backend.stop(job.instance, None, STOP_GRACE_S)
        with told_as_failure():
            await asyncio.to_thread(place.swap)
    return None


async def clear_old(tools: Tools, job: Job) -> StepName | None:
    """Remove the old files: the new life is ready."""
    weights = job.instance.weights
    if weights is not None and weights.pull:
        with told_as_failure():
            await asyncio.to_thread(place_of(job, weights).clear)
    return None


def _own_name(manifest: Path, folder: Path) -> tuple[str, ...]:
    """Return the manifest's own path when it lies among the files."""
    inside = manifest.is_relative_to(folder)
    return (str(manifest.relative_to(folder)),) if inside else ()


async def _stay_stopped(tools: Tools, job: Job, weights: Weights) -> None:
    """See to it that refused files serve nobody; what was pulled is removed."""
    await tools.backend.stop(job.instance, None, STOP_GRACE_S)
    if weights.pull:
        await asyncio.to_thread(place_of(job, weights).discard)
