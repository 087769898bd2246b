"""How verdicts are read; that they are is tested on a real broker."""

from typing import cast

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gatemesh_common.broker import PROOFS, VERDICTS, shard_queue
from gatemesh_common.publisher import Publisher
from gatemesh_health_manager.reading import PROOF_PREFETCH, VerdictReading
from gatemesh_health_manager.settings import HealthManagerSettings
from gatemesh_health_manager.store import Store


class Kept:
    """Keeps under which name verdicts were seen."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def apply_verdicts(self, queue: str, verdicts: object) -> None:
        """Keep the name."""
        self.names.append(queue)


def reading_with(kept: Kept, prefetch: int) -> VerdictReading:
    """Return the reading of a manager that has no broker."""
    settings = HealthManagerSettings.model_construct(
        amqp_url="amqp://nowhere", verdict_prefetch=prefetch, verdict_shards=2
    )
    return VerdictReading(
        settings, cast(Store, kept), cast(Publisher, None), cast(AsyncEngine, None)
    )


async def test_all_queues_have_one_memory() -> None:
    """A verdict that came by two of them is applied once."""
    kept = Kept()
    reading = reading_with(kept, 10)
    for queue in (PROOFS.name, VERDICTS.name, shard_queue(1).name):
        intake = reading.intake(queue)
        assert intake.queue == queue
        await intake._apply([])
    assert kept.names == [VERDICTS.name] * 3


@pytest.mark.parametrize(("allowed", "taken"), [(10_000, PROOF_PREFETCH), (10, 10)])
def test_few_proofs_are_taken_at_once(allowed: int, taken: int) -> None:
    """The rest of a storm is left for other managers; nobody takes more than he is allowed to."""
    reading = reading_with(Kept(), allowed)
    assert reading.intake(PROOFS.name)._prefetch == taken
    assert reading.intake(VERDICTS.name)._prefetch == allowed
