"""What the store promises by its shape; what it does is tested on a real database."""

from gatemesh_common.messages import (
    CommandReport,
    RequestRejected,
    StepFinished,
    TelemetryWindow,
)
from gatemesh_health_manager.store import PLAIN_RECORDS, InstanceMovedError
from gatemesh_health_manager.store_tables import METADATA


def test_plain_records_have_a_table_of_their_own() -> None:
    """Each kind of message is written down somewhere."""
    assert set(PLAIN_RECORDS) == {CommandReport, StepFinished, RequestRejected, TelemetryWindow}
    assert {table.name for table, _ in PLAIN_RECORDS.values()} <= set(METADATA.tables)


def test_an_instance_that_moved_is_looked_for_again() -> None:
    """The next try sees its new pool."""
    assert InstanceMovedError.retryable
