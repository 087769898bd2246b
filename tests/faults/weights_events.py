"""What may happen to the weights that a replacement pulls."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.faults.acting import VICTIM, ask_for, use_instances, with_whole_budget
from tests.faults.scenario import Play

from gatemesh_engine_sim.weights import FILE, digest_of, fresh_parameters, write_weights

TABLE = """
[pools.default.weights]
folder = "model"
manifest = "SHA256SUMS"
pull = ["sh", "-c", "cp ../source/* ."]
"""


async def replace_from_bad_sources(it: Play) -> None:
    """The source is missing, then corrupt: nothing of it is served, and a person is asked for."""
    async with with_weights(it) as folder:
        good = (folder / "source" / FILE).read_bytes()
        before = (folder / "model" / FILE).read_bytes()
        await with_whole_budget(it)
        (folder / "source" / FILE).unlink()
        await replace_in_vain(it, "pull_failed")
        (folder / "source" / FILE).write_bytes(good[:-8] + bytes(8))
        await replace_in_vain(it, "weights_refused")
        assert (folder / "model" / FILE).read_bytes() == before
        (folder / "source" / FILE).write_bytes(good)
        await ask_for(it, "replace", VICTIM)
        await it.site.fleet.settled()
        assert (folder / "model" / FILE).read_bytes() == good


async def replace_in_vain(it: Play, why: str) -> None:
    """Ask for a replacement and wait until a person is asked for."""
    await ask_for(it, "replace", VICTIM)
    state = it.site.fleet.state_of
    await it.reach(lambda: state(VICTIM) == "quarantined", "a person is asked for", 90.0)
    assert why in failures(it)


def failures(it: Play) -> set[str]:
    """Return how replacements have failed."""
    query = """SELECT split_part(reason, ':', 1) AS why FROM commands_v1
        WHERE issued_at >= %(since)s AND action = 'replace' AND status = 'failed'"""
    return {str(row["why"]) for row in it.site.fleet.rows(query, since=it.since)}


@asynccontextmanager
async def with_weights(it: Play) -> AsyncIterator[Path]:
    """Have the executor know of weights, and where to pull them from."""
    file = it.site.plan.instances_file
    before, folder = file.read_text(), file.parent
    for name, seed in (("model", 0), ("source", 1)):
        numbers = fresh_parameters(seed)
        write_weights(folder / name, numbers, digest_of(numbers))
    digest = hashlib.sha256((folder / "source" / FILE).read_bytes()).hexdigest()
    (folder / "SHA256SUMS").write_text(f"{digest}  {FILE}\n")
    await use_instances(it, before + TABLE)
    try:
        yield folder
    finally:
        await use_instances(it, before)
