"""Who is struck by which fault."""

import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from gatemesh_engine_sim.fault_plan import (
    DrillReader,
    FaultPlan,
    FaultSpec,
    ScheduledFault,
    spec_of_header,
    spec_of_xargs,
)

NAN = FaultSpec(fault="nan")
FLAT = FaultSpec(fault="flat")


def plan(
    schedule: Sequence[ScheduledFault] = (), drill: FaultSpec | None = None, seed: int = 0
) -> FaultPlan:
    """A plan with a fixed drill."""
    return FaultPlan(schedule=schedule, drill=lambda: drill, rng=random.Random(seed))


def test_clean_without_orders() -> None:
    """Nothing strikes by itself."""
    assert plan().choose(None, 0.0) is None


def test_order_of_precedence() -> None:
    """Request, control, drill, schedule."""
    shift = ScheduledFault(fault="shift")
    stuck = FaultSpec(fault="stuck")
    full = plan([shift], stuck)
    full.set_control(FLAT)
    assert full.choose(NAN, 0.0) == NAN
    assert full.choose(None, 0.0) == FLAT
    full.set_control(None)
    assert full.choose(None, 0.0) == stuck
    assert plan([shift]).choose(None, 0.0) == shift


def test_control_ends_after_its_requests() -> None:
    """A fault for exactly two requests."""
    limited = plan()
    limited.set_control(FaultSpec(fault="nan", requests=2))
    struck = [limited.choose(None, 0.0) is not None for _ in range(4)]
    assert struck == [True, True, False, False]
    assert limited.control is None
    assert limited.struck == 2


def test_probability_is_a_share() -> None:
    """About a third of many requests."""
    some = plan()
    some.set_control(FaultSpec(fault="nan", probability=0.33))
    struck = sum(some.choose(None, 0.0) is not None for _ in range(3_000))
    assert struck == pytest.approx(1_000, abs=150)


@pytest.mark.parametrize(
    ("age_s", "strikes"),
    [
        pytest.param(9.9, False, id="before"),
        pytest.param(10.0, True, id="at-begin"),
        pytest.param(19.9, True, id="within"),
        pytest.param(20.0, False, id="at-end"),
    ],
)
def test_schedule_by_time(age_s: float, *, strikes: bool) -> None:
    """The window includes its begin and not its end."""
    timed = plan([ScheduledFault(fault="nan", from_s=10, to_s=20)])
    assert (timed.choose(None, age_s) is not None) is strikes


def test_schedule_by_requests() -> None:
    """The second and third request only."""
    counted = plan([ScheduledFault(fault="nan", from_request=1, to_request=3)])
    assert [counted.choose(None, 0.0) is not None for _ in range(4)] == [False, True, True, False]


def test_header() -> None:
    """The name alone, or with options."""
    assert spec_of_header("nan") == NAN
    expected = FaultSpec(fault="nan", after_tokens=8, probability=0.5)
    assert spec_of_header("nan; after_tokens=8 ;probability=0.5") == expected


def test_header_out_of_bounds() -> None:
    """Refused, not ignored."""
    with pytest.raises(ValidationError, match="after_tokens"):
        spec_of_header("nan;after_tokens=-1")


def test_xargs() -> None:
    """As vLLM passes extra arguments on."""
    assert spec_of_xargs({"other": 1}) is None
    assert spec_of_xargs({"sim_fault": "nan", "sim_after_tokens": 3}) == FaultSpec(
        fault="nan", after_tokens=3
    )


class TestDrillFile:
    """The file that makes one life of one process go bad."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """Where the file is expected."""
        return tmp_path / "drill.json"

    @pytest.fixture
    def read(self, path: Path) -> DrillReader:
        """A reader of process group 77."""
        return DrillReader(path, 77, frozenset({"nan", "flat"}))

    def test_no_file_no_fault(self, read: DrillReader) -> None:
        """Nor any error."""
        assert read() is None
        assert DrillReader(None, 77, frozenset())() is None

    def test_own_group(self, path: Path, read: DrillReader) -> None:
        """The fault applies, unknown fields do not matter."""
        path.write_text('{"fault": "nan", "pgid": 77, "after_tokens": 4, "note": "drill 3"}')
        drill = read()
        assert drill is not None
        assert (drill.fault, drill.after_tokens) == ("nan", 4)

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param('{"fault": "nan", "pgid": 78}', id="another-life"),
            pytest.param('{"fault": "nan"}', id="no-group"),
            pytest.param('{"fault": "odd", "pgid": 77}', id="unknown-fault"),
            pytest.param('{"fault": "nan", "pg', id="half-written"),
        ],
    )
    def test_no_fault(self, text: str, path: Path, read: DrillReader) -> None:
        """A file for somebody else, or for nobody."""
        path.write_text(text)
        assert read() is None

    def test_change_and_removal_are_seen(self, path: Path, read: DrillReader) -> None:
        """At the next request."""
        path.write_text('{"fault": "nan", "pgid": 77}')
        assert read() is not None
        path.write_text('{"fault": "flat", "pgid": 77}')
        os.utime(path, ns=(1, 1))
        drill = read()
        assert drill is not None
        assert drill.fault == "flat"
        path.unlink()
        assert read() is None
