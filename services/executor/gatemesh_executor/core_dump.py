"""The step that keeps the memory of a proven sick life before it is ended."""

from pathlib import Path

from gatemesh_common.messages import RestartInstance, StepName
from gatemesh_executor.backends.supervisor import pid_of
from gatemesh_executor.core_files import dump_folder, forget_old, part_of
from gatemesh_executor.dumping import CoreDumpFailedError, DumpOrder
from gatemesh_executor.instances import CoreDump
from gatemesh_executor.jobs import Job, Tools, observe
from gatemesh_executor.weights.folders import remove


async def dump_core(tools: Tools, job: Job) -> StepName | None:
    """Take a core dump where the command wants one and the instance has rules for it.

    It never stands in the way: whatever fails is noted in the report, and the restart goes on.
    """
    rules, command = job.instance.core_dump, job.command
    if not isinstance(command, RestartInstance) or rules is None or rules.how == "off":
        return None
    if not command.dump_timeout_s or command.life_id is None:
        return None
    place = dump_folder(rules.folder, command.instance_id, command.message_id, command.timestamp)
    if not place.exists() and (await observe(tools, job.instance)).life_id != command.life_id:
        return None
    try:
        if not place.exists():
            await _dump(tools, rules, place, (command.life_id, command.dump_timeout_s))
    except (CoreDumpFailedError, OSError) as error:
        job.notes.append(f"no core dump: {error}")
        return None
    job.core_dump = str(place)
    try:
        forget_old(rules.folder, command.instance_id, rules.keep)
    except OSError as error:
        job.notes.append(f"older core dumps were not removed: {error}")
    return "dumped"


async def _dump(tools: Tools, rules: CoreDump, place: Path, life: tuple[str, float]) -> None:
    """Write one dump; it has its name only when it is whole."""
    group = pid_of(life[0])
    if group is None:
        raise CoreDumpFailedError("the life is no process of this machine")
    part = part_of(place)
    remove(part)
    # Memory holds what clients asked: for the executor's user alone.
    part.mkdir(parents=True, mode=0o700)
    try:
        seconds = min(rules.timeout_s, life[1])
        await tools.dumper.dump(DumpOrder(rules, group, part, seconds))
        part.rename(place)
    finally:
        remove(part)
