"""Records that are read again: the same object for the same rows, another for any other."""

from dataclasses import replace
from typing import Any

import pytest

from gatemesh_health_manager.known_records import KnownRecords
from gatemesh_health_manager.record import Incident
from gatemesh_health_manager.store_rows import instance_row

from .samples import at, incident, record

BEFORE = record(restarts=(at(-50),), penalty=3.0)


def test_the_same_rows_are_read_once() -> None:
    """Whoever reads a fleet every second does not make a thousand records each time."""
    known = KnownRecords()
    first = known.record(instance_row(BEFORE), incident())
    assert known.record(instance_row(BEFORE), incident()) is first


@pytest.mark.parametrize(
    ("change", "goes_on"),
    [
        ({"penalty": 4.0}, incident()),
        ({"restarts": (at(-50), at(-1))}, incident()),
        ({"incarnation": 7}, incident()),
        ({}, None),
        ({}, replace(incident(), reason="another")),
    ],
)
def test_whatever_differs_is_read_anew(change: dict[str, Any], goes_on: Incident | None) -> None:
    """A record of before would decide by what is no longer so."""
    known = KnownRecords()
    known.record(instance_row(BEFORE), incident())
    now = replace(BEFORE, **change)
    assert known.record(instance_row(now), goes_on) == replace(now, incident=goes_on)
    # Back again, as after a transaction that was rolled back.
    assert known.record(instance_row(BEFORE), incident()) == replace(BEFORE, incident=incident())


def test_instances_do_not_share_a_record() -> None:
    """Two instances may say the same of all but their name."""
    known = KnownRecords()
    other = replace(BEFORE, instance_id="engine-other")
    assert known.record(instance_row(BEFORE), None).instance_id == BEFORE.instance_id
    assert known.record(instance_row(other), None).instance_id == "engine-other"
