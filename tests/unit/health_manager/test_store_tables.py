"""The tables as statements see them."""

from gatemesh_health_manager.store_rows import instance_row
from gatemesh_health_manager.store_tables import INSTANCES, METADATA

from .samples import record


def test_every_column_of_an_instance_is_written() -> None:
    """The row and the table name the same columns."""
    assert set(instance_row(record())) == {column.name for column in INSTANCES.columns}


def test_moments_have_a_zone() -> None:
    """A moment without one would be read as local time."""
    moments = [
        column
        for table in METADATA.tables.values()
        for column in table.columns
        if "DATETIME" in str(column.type).upper()
    ]
    assert moments
    assert all(column.type.timezone for column in moments)  # type: ignore[attr-defined]
