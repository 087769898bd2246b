"""What may happen to clocks."""

from pathlib import Path

from tests.faults.acting import absent, accuse, is_repaired, running
from tests.faults.scenario import Play

MANAGER = "health_manager"
JUMPING = Path(__file__).parent / "jumping_manager.py"
HOUR_S = 3600.0


async def set_clock(it: Play) -> None:
    """The manager's clock is set forward, back and right again; then one must be repaired."""
    file = it.site.plan.folder.root / "clock"
    write(file, 0)
    async with absent(it, MANAGER):
        with running(it, MANAGER, str(JUMPING), str(file)):
            await it.is_cured()
            for hours in (1, 0, -1, 0):
                write(file, hours * HOUR_S)
                await it.flows(events=60)
            await it.is_cured()
            await accuse(it)
            await is_repaired(it)


def write(file: Path, seconds: float) -> None:
    """Set the clock in one step."""
    draft = file.with_suffix(".draft")
    draft.write_text(str(seconds))
    draft.replace(file)
