"""Steps that repair a running engine from within, and the checksums by which damage is told."""

import hashlib
import logging

from gatemesh_common.errors import GatemeshError
from gatemesh_common.messages import StepName
from gatemesh_executor.backends.base import BackendUnavailableError
from gatemesh_executor.jobs import Job, Tools, observe
from gatemesh_executor.repairing import RepairFailedError, RepairNotOfferedError
from gatemesh_executor.weights.checksums import different

log = logging.getLogger(__name__)

CACHE_POLL_S = 0.5
OF_NOTHING = hashlib.sha256(b"").hexdigest()
"""Checksum of a parameter that the engine keeps elsewhere: such a one always agrees."""
MOST_NAMED = 3


class LifeGoneError(GatemeshError):
    """The life that was to be repaired does not run any more."""


class CacheInUseError(GatemeshError):
    """Requests held the prefix cache all the time; it may still hold what broken weights wrote."""


async def check_weights(tools: Tools, job: Job) -> StepName:
    """Take the checksums of the life in question, and say how they differ from proven ones.

    Raises:
        LifeGoneError: that life does not run.
        RepairNotOfferedError: the engine does not offer repair.
    """
    await _need_life(tools, job)
    sums = await tools.repair.checksums(job.instance.base_url)
    unseen = sum(digest == OF_NOTHING for digest in sums.values())
    if unseen:
        job.notes.append(f"{unseen} of {len(sums)} parameters cannot be checked on this engine")
    baseline = tools.checksums.load(job.instance)
    if baseline is None:
        job.notes.append("no checksums of a proven life to compare with")
    else:
        job.notes.append(_worded("differed from the proven ones", different(baseline, sums)))
    job.sums = sums
    return "checked"


async def reload_weights(tools: Tools, job: Job) -> StepName:
    """Load the weights from their files again.

    Raises:
        RepairFailedError: they still differ from the proven ones: the files are damaged.
    """
    await tools.repair.reload(job.instance.base_url)
    sums = await tools.repair.checksums(job.instance.base_url)
    baseline = tools.checksums.load(job.instance)
    wrong = different(baseline, sums) if baseline is not None else []
    if wrong:
        raise RepairFailedError(_worded("still differ after the reload", wrong))
    if job.sums is not None:
        job.notes.append(_worded("changed by the reload", different(job.sums, sums)))
    return "reloaded"


async def reset_cache(tools: Tools, job: Job) -> StepName:
    """Empty the prefix cache, as soon as no request holds it: broken weights wrote to it.

    Raises:
        CacheInUseError: it was in use all the time.
    """
    deadline = tools.pace.now() + tools.limits.cache_reset_s
    while not await tools.repair.reset_cache(job.instance.base_url):
        if tools.pace.now() >= deadline:
            raise CacheInUseError(f"not free within {tools.limits.cache_reset_s:g} s")
        await tools.pace.sleep(CACHE_POLL_S)
    return "cache_reset"


async def note_checksums(tools: Tools, job: Job) -> StepName | None:
    """Keep the checksums of an engine that has just been proven clean; a failure holds up nothing.

    Probation is the manager's; that it lets an instance back is the proof that reaches us.
    """
    if not tools.checksums.kept:
        return None
    try:
        await _need_life(tools, job)
        tools.checksums.save(job.instance, await tools.repair.checksums(job.instance.base_url))
    except RepairNotOfferedError:
        return None
    except (RepairFailedError, LifeGoneError, BackendUnavailableError, OSError) as error:
        log.warning(
            "checksums_not_kept",
            extra={"instance_id": job.instance.instance_id, "error": str(error)},
        )
    return None


async def _need_life(tools: Tools, job: Job) -> None:
    found = await observe(tools, job.instance)
    named = job.command.life_id
    if found.life_id is None or named not in (None, found.life_id):
        raise LifeGoneError("the life in question does not run any more")


def _worded(what: str, names: list[str]) -> str:
    shown = ", ".join(names[:MOST_NAMED])
    return f"{len(names)} parameters {what}" + (f": {shown}" if shown else "")
