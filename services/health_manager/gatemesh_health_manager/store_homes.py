"""In which pool each instance was last seen: what a transaction locks is known before it begins."""

from collections.abc import Collection, Mapping

from sqlalchemy.ext.asyncio import AsyncConnection

from gatemesh_health_manager.fleet import Fleet
from gatemesh_health_manager.store_fleet import pools_of


class Homes:
    """Pools of instances, remembered; whoever has locked them finds out where one is wrong."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    async def of(self, connection: AsyncConnection, names: Collection[str]) -> Mapping[str, str]:
        """Return the pools of those of some instances that are known; others are looked up."""
        missing = [name for name in names if name not in self._known]
        if missing:
            self._known |= await pools_of(connection, missing)
        return {name: self._known[name] for name in names if name in self._known}

    def learn(self, fleet: Fleet) -> None:
        """Remember where the instances are that the database has of some pools."""
        self._known.update((name, record.pool) for name, record in fleet.stored.items())

    def forget(self, names: Collection[str]) -> None:
        """Have instances looked up the next time."""
        for name in names:
            self._known.pop(name, None)
