"""What every test with a real manager and a real database checks at its end."""

from datetime import UTC, datetime

from gatemesh_health_manager.comparing import repeat
from gatemesh_health_manager.history import NothingKeptError
from gatemesh_health_manager.replaying import Changed
from gatemesh_health_manager.store_history import HistoryStore

DAWN, DUSK = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""A clock that was set by an hour has left moments outside of any narrower bounds."""


def assert_replay_agrees(database_url: str) -> None:
    """Decide about the whole history once more; every decision must be the stored one."""
    with HistoryStore(database_url) as store:
        try:
            history = store.read(DAWN, DUSK)
        except NothingKeptError:
            # No manager has ever started here.
            return
        found = repeat(history, DAWN)
    if found.differences or found.changed_outside:
        # Each on a line of its own, field by field: who reads it has nothing else left of the run.
        lines = [*found.differences, *map(told, found.changed_outside)]
        raise AssertionError("replayed otherwise:\n" + "\n".join(map(str, lines)))


def told(changed: Changed) -> str:
    """Return which fields of a record were not as the replay had left them, and when."""
    fields = [
        f"  {name}: replayed {left}, stored {right}"
        for name, (left, right) in changed.fields.items()
    ]
    return "\n".join([f"{changed.instance_id} kept at {changed.at.isoformat()}:", *fields])
