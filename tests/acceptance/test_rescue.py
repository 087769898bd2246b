"""With rescue on a client reads what a healthy engine would have written, to the letter."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.fleet import Fleet, now
from tests.acceptance.rescuing import rescuing, tell, uncut

from gatemesh_mesh.drills import Drill, end_drill, start_drill

pytestmark = pytest.mark.acceptance

ONSET = 6
PROMPTS = [f"Tell me about matter {number}, length 100." for number in range(12)]


@pytest.fixture
def victim(fleet: Fleet) -> str:
    """Choose the instance that gets most: one that came back a moment ago gets little."""
    [row] = fleet.rows("SELECT instance_id FROM instance_health_v1 ORDER BY weight DESC LIMIT 1")
    return str(row["instance_id"])


@pytest.fixture
def drill_file(fleet: Fleet, victim: str) -> Iterator[Path]:
    """Remove the drill afterwards, whatever happened."""
    path = fleet.plan.folder.root / "drills" / f"{victim}.json"
    yield path
    end_drill(path)


async def test_a_rescued_stream_is_the_uncut_answer(
    fleet: Fleet, victim: str, drill_file: Path
) -> None:
    """NaN in the middle: every stream is whole under one id, and the engine is repaired."""
    since = now()
    expected = await uncut(fleet.plan, PROMPTS, max_tokens=60)
    async with rescuing(fleet.plan) as agent:
        spoilt = Drill("nan", pgid=fleet.pid_of(victim), after_tokens=ONSET)
        start_drill(drill_file, spoilt)
        answers = await tell(agent.url, PROMPTS, max_tokens=60)
        assert [one.text for one in answers] == expected
        assert all(one.is_whole for one in answers)
        assert agent.continued >= 1
        await fleet.repaired(victim, since)
    assert fleet.commands(since) == ["eject", "restart"]
