"""What the store promises by its shape; what it does is tested on a real database."""

from gatemesh_common.messages import (
    Action,
    Capture,
    CommandReport,
    ReportOutcome,
    RequestRejected,
    StepFinished,
    TelemetryWindow,
)
from gatemesh_health_manager.store import PLAIN_RECORDS, InstanceMovedError, is_of_an_order
from gatemesh_health_manager.store_tables import METADATA

from .samples import report, seen


def test_plain_records_have_a_table_of_their_own() -> None:
    """Each kind of message is written down somewhere."""
    assert set(PLAIN_RECORDS) == {
        *(CommandReport, StepFinished, RequestRejected, TelemetryWindow, Capture),
    }
    assert {table.name for table, _ in PLAIN_RECORDS.values()} <= set(METADATA.tables)


def test_an_instance_that_moved_is_looked_for_again() -> None:
    """The next try sees its new pool."""
    assert InstanceMovedError.retryable


def test_a_forgery_is_of_no_order() -> None:
    """Its report would end the command whose id it bears, or make an instance of a name."""
    assert is_of_an_order(report(Action.DRAIN))
    assert is_of_an_order(report(Action.DRAIN, ReportOutcome.REFUSED, reason="expired"))
    assert is_of_an_order(seen())
    assert not is_of_an_order(report(Action.DRAIN, ReportOutcome.REFUSED, ends_command=False))
