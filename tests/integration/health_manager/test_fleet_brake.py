"""The fleet brake, between a real broker and a real database, over the death of a manager."""

import subprocess
from pathlib import Path

import pytest

from gatemesh_common.messages import ActionRequest, CheckLevel

from .conftest import Site, verdict

pytestmark = pytest.mark.integration

NAMES = ("engine-0", "engine-1", "engine-2")
POLICY = "[defaults.ejection]\nmax_out_share = 1.0\nmin_in_rotation = 0\n"


async def accuse(site: Site, *names: str) -> None:
    """Publish one proof against each instance."""
    for name in names:
        await site.publisher.publish(verdict(name, CheckLevel.L3, hard=True, request_id=name))


async def ask(site: Site, backlog: str) -> None:
    """Reset the brake as an operator does, and wait until it is decided."""
    asked = site.value("SELECT count(*) FROM requests")
    request = ActionRequest.model_validate(
        {
            "timestamp": "2026-05-01T12:00:00Z",
            "action": "reset_brake",
            "requested_by": "ann",
            "backlog": backlog,
            "reason": f"after {asked} requests",
        }
    )
    await site.publisher.publish(request)
    decided = f"SELECT count(*) FROM requests WHERE message_id = '{request.message_id}'"  # noqa: S608
    await site.until_value(decided, 1)


@pytest.mark.parametrize(("backlog", "becomes"), [("skip", "suspect"), ("replay", "ejected")])
async def test_a_brake_outlives_the_manager_until_a_person_resets_it(
    site: Site,
    tmp_path: Path,
    backlog: str,
    becomes: str,
) -> None:
    """The third of three accused makes it fall; killed and started anew, the manager waits."""
    file = tmp_path / "policy.toml"
    file.write_text(POLICY)
    settings = {"GATEMESH_HEALTH_MANAGER_POLICY_FILE": str(file)}
    process: subprocess.Popen[bytes] = await site.start_ready(**settings)
    await site.bring_up(*NAMES)
    await ask(site, backlog)
    assert site.rows("SELECT outcome, why FROM requests_v1") == [
        ("refused", "the fleet brake of this pool is not on")
    ]
    await accuse(site, *NAMES)
    await site.until_value("SELECT braked FROM pools_v1", True)  # noqa: FBT003 (a column's value)
    process.kill()
    process.wait(30)
    await site.start_ready(**settings)
    ready = "SELECT brake_reason, in_rotation, held_incidents FROM pools_v1"
    assert site.rows(ready) == [("3 of 3 instances were accused within 300 s", 1, 1)]
    held = "SELECT instance_id FROM incidents_v1 WHERE status = 'held'"
    name = site.value(held)
    await ask(site, backlog)
    await site.until_value("SELECT braked FROM pools_v1", False)  # noqa: FBT003
    assert site.value("SELECT brake_reset FROM pools_v1") == f"{backlog} by ann (user gatemesh)"
    assert site.rows("SELECT why FROM requests_v1 WHERE outcome = 'accepted'") == [
        (f"backlog: {backlog}",)
    ]
    await site.until_state(name, becomes)
    assert site.rows(held) == []
