"""Records as they were read last: one whose rows say the same again is not made again."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gatemesh_health_manager.record import Incident, InstanceRecord
from gatemesh_health_manager.store_rows import read_instance


class _Read(NamedTuple):
    row: Mapping[str, Any]
    incident: Incident | None
    record: InstanceRecord


class KnownRecords:
    """The last record of each instance in the table; a thousand take a few megabytes."""

    def __init__(self) -> None:
        self._read: dict[str, _Read] = {}

    def record(self, row: Mapping[str, Any], incident: Incident | None) -> InstanceRecord:
        """Return the record of a row and of the incident that goes on there."""
        known = self._read.get(row["instance_id"])
        if known is None or known.row != row or known.incident != incident:
            known = _Read(row, incident, read_instance(row, incident))
            self._read[row["instance_id"]] = known
        return known.record
