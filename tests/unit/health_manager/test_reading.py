"""How verdicts are read; that they are is tested on a real broker."""

from typing import cast

from sqlalchemy.ext.asyncio import AsyncEngine

from gatemesh_common.broker import VERDICTS, shard_queue
from gatemesh_common.publisher import Publisher
from gatemesh_health_manager.reading import VerdictReading
from gatemesh_health_manager.settings import HealthManagerSettings
from gatemesh_health_manager.store import Store


class Kept:
    """Keeps under which name verdicts were seen."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def apply_verdicts(self, queue: str, verdicts: object) -> None:
        """Keep the name."""
        self.names.append(queue)


async def test_all_queues_have_one_memory() -> None:
    """A verdict that came by two of them is applied once."""
    kept = Kept()
    settings = HealthManagerSettings.model_construct(
        amqp_url="amqp://nowhere", verdict_prefetch=10, verdict_shards=2
    )
    reading = VerdictReading(
        settings, cast(Store, kept), cast(Publisher, None), cast(AsyncEngine, None)
    )
    for queue in (VERDICTS.name, shard_queue(1).name):
        intake = reading.intake(queue)
        assert intake.queue == queue
        await intake._apply([])
    assert kept.names == [VERDICTS.name] * 2
