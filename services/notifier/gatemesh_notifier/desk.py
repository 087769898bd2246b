"""Hands each event to everybody who is to be told, and waits until they are."""

import asyncio
from collections.abc import Sequence

from gatemesh_notifier.courier import Courier
from gatemesh_notifier.errors import UndeliveredError
from gatemesh_notifier.facts import Fact


class Desk:
    """All couriers."""

    def __init__(self, couriers: Sequence[Courier]) -> None:
        self._couriers = couriers

    async def tell(self, fact: Fact) -> None:
        """Return once every target has it; the message is acknowledged after that.

        Raises:
            UndeliveredError: at least one target could not be reached in time.
        """
        posted = [(courier.target.name, courier.post(fact)) for courier in self._couriers]
        awaited = {name: future for name, future in posted if future is not None}
        if awaited:
            # Whoever stops waiting must not take the delivery away from others.
            await asyncio.wait(awaited.values())
        failed = tuple(name for name, future in awaited.items() if not future.result())
        if failed:
            raise UndeliveredError(failed)

    def mention(self, fact: Fact) -> None:
        """Tell without waiting: nobody sends it again."""
        for courier in self._couriers:
            courier.post(fact)

    def stop(self) -> None:
        """Have `run` end once nothing is under way."""
        for courier in self._couriers:
            courier.stop()

    async def run(self) -> None:
        """Deliver until stopped."""
        await asyncio.gather(*(courier.run() for courier in self._couriers))
