"""What every test with a real manager and a real database checks at its end."""

from datetime import UTC, datetime

from gatemesh_health_manager.comparing import repeat
from gatemesh_health_manager.history import HistoryError
from gatemesh_health_manager.store_history import HistoryStore

DAWN = datetime(2000, 1, 1, tzinfo=UTC)


def assert_replay_agrees(database_url: str) -> None:
    """Decide about the whole history once more; every decision must be the stored one."""
    try:
        history = HistoryStore(database_url).read(DAWN, datetime.now(UTC))
    except HistoryError:
        # No manager has ever started here.
        return
    assert repeat(history, DAWN).differences == []
