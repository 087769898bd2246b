"""What one transaction promises by its shape; what it does is tested on a real database."""

from gatemesh_common.messages import (
    Capture,
    CommandReport,
    RequestRejected,
    StepFinished,
    TelemetryWindow,
)
from gatemesh_health_manager.store_tables import METADATA
from gatemesh_health_manager.store_work import (
    AT_ONCE,
    PLAIN_RECORDS,
    InstanceMovedError,
    chunks,
    once,
)

from .samples import verdict


def test_plain_records_have_a_table_of_their_own() -> None:
    """Each kind of message is written down somewhere."""
    assert set(PLAIN_RECORDS) == {
        *(CommandReport, StepFinished, RequestRejected, TelemetryWindow, Capture),
    }
    assert {table.name for table, _ in PLAIN_RECORDS.values()} <= set(METADATA.tables)


def test_an_instance_that_moved_is_looked_for_again() -> None:
    """The next try sees its new pool."""
    assert InstanceMovedError.retryable


def test_each_message_is_handled_once_in_its_order() -> None:
    """Of those that were never handled before."""
    said = [verdict(message_id=name) for name in ("a", "b", "a", "c")]
    assert [one.message_id for one in once(said, {"a", "c"})] == ["a", "c"]


def test_a_large_batch_is_decided_about_in_parts() -> None:
    """All of it, in its order."""
    said = [verdict(message_id=f"m{n}") for n in range(2 * AT_ONCE + 1)]
    parts = list(chunks(said))
    assert [len(part) for part in parts] == [AT_ONCE, AT_ONCE, 1]
    assert [one for part in parts for one in part] == said
