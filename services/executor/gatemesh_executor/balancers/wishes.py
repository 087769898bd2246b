"""What balancers should do with each instance: the routing table's word, or a command's (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from gatemesh_common.messages import RoutingTable
from gatemesh_common.versions import supersedes


@dataclass(frozen=True)
class OutWord:
    """A command's word that an instance is out; it holds until a table knows of it."""

    version: int
    """The first table without the instance."""
    timestamp: datetime


@dataclass(frozen=True)
class Wishes:
    """Tables by pool, and words of commands by instance."""

    tables: Mapping[str, RoutingTable] = field(default_factory=dict)
    words: Mapping[str, OutWord] = field(default_factory=dict)

    def hearing(self, table: RoutingTable) -> "Wishes":
        """Return the wishes after a table was heard; an older one changes nothing."""
        known = self.tables.get(table.pool)
        if known is not None and table.version == known.version:
            # A repetition is younger: what commands said long before it, it knows of.
            table = max(table, known, key=lambda one: one.timestamp)
        elif known is not None and not supersedes(table, known):
            return self
        return replace(self, tables={**self.tables, table.pool: table})

    def taking_out(self, instance_id: str, pool: str, version: int, at: datetime) -> "Wishes":
        """Return the wishes after a command took an instance out."""
        known = self.tables.get(pool)
        # A command that names no table is not known to any that was heard.
        least = known.version + 1 if known and not version else version
        return replace(self, words={**self.words, instance_id: OutWord(max(1, least), at)})

    def share_of(self, instance_id: str, pool: str) -> float | None:
        """Return the share that an instance should have, 0 meaning out; None if nobody has said."""
        table, word = self.tables.get(pool), self.words.get(instance_id)
        if word is not None and (table is None or not _knows(table, word)):
            return 0.0
        rows = table.instances if table is not None else ()
        row = next((one for one in rows if one.instance_id == instance_id), None)
        if row is None:
            return None
        return row.weight if row.in_rotation else 0.0


def _knows(table: RoutingTable, word: OutWord) -> bool:
    return table.version == word.version or supersedes(table, word)
