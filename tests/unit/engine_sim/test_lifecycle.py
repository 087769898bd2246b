"""Putting the parts together; the life itself is an integration test."""

import os
from pathlib import Path

from gatemesh_engine_sim.fault_plan import ScheduledFault
from gatemesh_engine_sim.lifecycle import build_service
from gatemesh_engine_sim.settings import SimSettings


async def test_settings_reach_their_parts() -> None:
    """Limits and schedule."""
    schedule = '[{"fault": "nan", "from_request": 1}]'
    service = build_service(SimSettings.model_validate({"max_num_seqs": 3, "schedule": schedule}))
    assert service.engine.capacity == 3
    assert [service.plan.choose(None, 0.0) for _ in range(2)] == [
        None,
        ScheduledFault(fault="nan", from_request=1),
    ]


async def test_drill_file_is_read_for_this_group(tmp_path: Path) -> None:
    """As it stands when a request comes."""
    drill = tmp_path / "drill.json"
    service = build_service(SimSettings(chaos_file=drill))
    assert service.plan.choose(None, 0.0) is None
    drill.write_text(f'{{"fault": "flat", "pgid": {os.getpgrp()}}}')
    spec = service.plan.choose(None, 0.0)
    assert spec is not None
    assert spec.fault == "flat"
