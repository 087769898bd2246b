"""Which tables lie in days; making and dropping them is tested on a real database."""

from gatemesh_health_manager.store_days import CAPTURES, DIVIDED, INPUTS, TELEMETRY, VERDICTS
from gatemesh_health_manager.store_rows import VERDICT_NAMES
from gatemesh_health_manager.store_tables import CAPTURES as CAPTURES_TABLE
from gatemesh_health_manager.store_tables import DECISION_INPUTS, TELEMETRY_WINDOWS


def test_the_moment_of_a_day_is_a_column() -> None:
    """The one by which the table is divided."""
    assert VERDICTS.moment in VERDICT_NAMES
    assert INPUTS.moment in DECISION_INPUTS.c
    assert TELEMETRY.moment in TELEMETRY_WINDOWS.c


def test_of_captures_the_database_says_when_they_came() -> None:
    """So no statement of ours names the moment."""
    assert CAPTURES.moment == "received_at"
    assert CAPTURES.moment not in CAPTURES_TABLE.c


def test_each_has_a_place_for_stray_rows() -> None:
    """No row is refused because its day is missing."""
    assert len({table.other for table in DIVIDED}) == len(DIVIDED)
