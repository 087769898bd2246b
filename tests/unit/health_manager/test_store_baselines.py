"""What the store of baselines promises by its shape; what it does is tested on a database."""

from datetime import UTC, datetime
from typing import cast

from sqlalchemy import RowMapping

from gatemesh_common.messages import Baseline, Decoding, TelemetryWindow
from gatemesh_health_manager.store_baselines import held_back, message
from gatemesh_health_manager.store_rows import telemetry_row
from gatemesh_health_manager.store_tables import BASELINES, TELEMETRY_WINDOWS

from .samples import NOW
from .test_baselines import sketch

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_sketches_are_read_as_they_were_written() -> None:
    """The row of a telemetry window holds them back."""
    window = TelemetryWindow(
        timestamp=NOW,
        instance_id="engine-0",
        pool="p",
        agent_id="a",
        incarnation=2,
        window_start=NOON,
        window_end=NOW,
        sketches=(sketch({25: 3}),),
    )
    row = telemetry_row(window)
    assert set(row) == {column.name for column in TELEMETRY_WINDOWS.columns}
    held = held_back(cast(RowMapping, row))
    assert held.sketches == window.sketches
    assert (held.instance_id, held.incarnation, held.window_start) == ("engine-0", 2, NOON)
    assert telemetry_row(window.model_copy(update={"sketches": ()}))["sketches"] is None


def test_absurd_sketches_are_left_out() -> None:
    """One that was stored by an earlier release must not stop the others."""
    good = sketch({25: 3}).model_dump(mode="json")
    absurd = [{**good, "width": 1e308}, {**good, "bins": {"5": -1}}, {**good, "metric": 7}]
    row = {
        "instance_id": "engine-0",
        "incarnation": 2,
        "window_start": NOON,
        "sketches": [absurd[0], good, *absurd[1:]],
    }
    assert held_back(cast(RowMapping, row)).sketches == (sketch({25: 3}),)


def test_a_row_is_what_agents_get() -> None:
    """All its columns but the moment of the change."""
    row = {
        "pool": "p",
        "model_version": "m",
        "version": 7,
        "shadow_share": 0.25,
        "entries": [
            {
                "metric": "nll_whole",
                "decoding": "greedy",
                "script": "latin",
                "count": 60,
                "median": 0.5,
                "mad": 0.1,
                "quantiles": None,
            }
        ],
        "changed_at": NOON,
    }
    assert set(row) == {column.name for column in BASELINES.columns}
    found = message(cast(RowMapping, row), NOW)
    assert isinstance(found, Baseline)
    assert (found.version, found.shadow_share, found.timestamp) == (7, 0.25, NOW)
    assert found.entries[0].decoding is Decoding.GREEDY
