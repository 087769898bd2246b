"""What may be odd about an engine."""

from tests.faults.acting import VICTIM, engine_of, is_repaired, use_instances
from tests.faults.odd_engine import before
from tests.faults.scenario import Play

ODD_ANSWERS = 60


async def tell_odd_logprobs(it: Play) -> None:
    """An engine tells no logprobs, -9999, or fewer than it was asked for."""
    engine = engine_of(it, VICTIM)
    listed = it.site.plan.instances_file.read_text()
    async with before(engine.base_url) as (odd, address):
        await use_instances(it, listed.replace(engine.base_url, address))
        await it.reach(lambda: address_of(it) == address, "the odd engine is known")
        await it.reach(lambda: odd.answers >= ODD_ANSWERS, "odd answers")
        await use_instances(it, listed)
        await it.reach(lambda: address_of(it) == engine.base_url, "the engine is known again")
        await it.flows()


async def tell_nan(it: Play) -> None:
    """One life of an engine computes no numbers any more."""
    it.site.spoil(VICTIM, "nan")
    await is_repaired(it)


def address_of(it: Play) -> str:
    """Return where the victim is, as everybody is told."""
    query = "SELECT base_url FROM instance_health_v1 WHERE instance_id = %(instance)s"
    return str(it.site.fleet.rows(query, instance=VICTIM)[0]["base_url"])
