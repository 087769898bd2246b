"""Rules that change while the manager runs, between a real broker and a real database."""

import asyncio
import urllib.request
from pathlib import Path

import pytest

from gatemesh_health_manager.policy import Policy, parse_policy

from .conftest import Site, failures

pytestmark = pytest.mark.integration

STRICT = "[defaults.condition_a]\nmore_than = 2\n"
WRONG = STRICT + "more_then = 2\n"
KNOWN = "SELECT count(*) FROM policy_versions WHERE version = '{}'"


def metrics(site: Site) -> str:
    """Return what a monitoring system reads."""
    url = f"http://127.0.0.1:{site.admin_port}/metrics"
    with urllib.request.urlopen(url, timeout=5) as answer:
        return str(answer.read().decode())


async def shows(site: Site, line: str) -> None:
    """Return as soon as the metrics have a line."""

    async def true() -> bool:
        return line in (await asyncio.to_thread(metrics, site)).splitlines()

    await site.until(true)


async def test_rules_change_without_a_restart(site: Site, tmp_path: Path) -> None:
    """New rules decide and are named by what they decided; a file at fault changes nothing."""
    file = tmp_path / "policy.toml"
    file.write_text("")
    await site.start_ready(GATEMESH_HEALTH_MANAGER_POLICY_FILE=str(file))
    await site.bring_up("engine-0", "engine-1")
    await shows(site, f'gatemesh_policy_info{{version="{Policy().version}"}} 1.0')

    file.write_text(WRONG)
    await shows(site, "gatemesh_policy_invalid 1.0")
    strict = parse_policy(STRICT).version
    assert site.value(KNOWN.format(strict)) == 0
    for each in failures("engine-0", 3):
        await site.publisher.publish(each)
    await site.until_value("SELECT count(*) FROM verdicts WHERE outcome = 'failed'", 3)
    assert site.value("SELECT count(*) FROM incidents") == 0

    file.write_text(STRICT)
    await shows(site, f'gatemesh_policy_info{{version="{strict}"}} 1.0')
    assert "gatemesh_policy_invalid 0.0" in (await asyncio.to_thread(metrics, site)).splitlines()
    assert site.value(KNOWN.format(strict)) == 1
    for each in failures("engine-1", 3):
        await site.publisher.publish(each)
    await site.until_state("engine-1", "draining")
    assert site.rows("SELECT instance_id, policy_version FROM incidents_v1") == [
        ("engine-1", strict)
    ]
