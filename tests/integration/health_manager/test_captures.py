"""A fault of an engine is captured by the agent, told by the broker, and read by those who may."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from tests.integration.agent.conftest import start_engine
from tests.integration.agent.parts import Setup, chat, serving, settings_for, until

from gatemesh_common.broker import CAPTURES
from gatemesh_ctl.captures import found, texts_of
from gatemesh_ctl.store import Store
from gatemesh_mesh.postgres import plain_url

from .conftest import Site

pytestmark = pytest.mark.integration

POLICY = """
[pools.default.capture]
text = "full"
rules = [{ name = "customer", pattern = "C-[0-9]+" }]
"""
SAID = "Dear C-1742, we have written to bob.c@example.org about all of it, as you wished."
SECRETS = ("C-1742", "bob.c", "example.org")


@asynccontextmanager
async def capturing(site: Site, folder: Path) -> AsyncIterator[Setup]:
    """Run an agent in front of one simulated engine, with all that captures need."""
    process, address = start_engine("engine-0")
    settings = settings_for(
        folder,
        {"engine-0": address},
        GATEMESH_AMQP_URL=site.amqp_url,
        labels="host=h1,engine-0.gpu=7",
        shadow_share=0,
        shadow_share_suspect=0,
    )
    try:
        async with serving(settings) as setup:
            guarding = setup.agent.guarding
            beside = (
                *(guarding.captures.run(), guarding.captured.run(), setup.agent.sender.run()),
                setup.agent.capture_feed.run(site.amqp_url),
            )
            tasks = [asyncio.ensure_future(one) for one in beside]
            yield setup
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        process.kill()
        process.wait()


def read_as(site: Site, role: str, query: str) -> list[dict[str, Any]]:
    """Return the rows that a role sees."""
    with psycopg.connect(plain_url(site.database_url), row_factory=dict_row) as connection:
        connection.execute(f"SET ROLE {role}".encode())
        return connection.execute(query.encode()).fetchall()


async def test_a_fault_is_captured_from_engine_to_reader(
    site: Site, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Figures for all readers; text by policy, redacted, for those with evidence's role only."""
    file = tmp_path / "policy.toml"
    file.write_text(POLICY)
    await site.start_ready(
        GATEMESH_HEALTH_MANAGER_POLICY_FILE=str(file), GATEMESH_HEALTH_MANAGER_BASELINE_S="0.2"
    )
    await site.observe("engine-0")
    async with capturing(site, tmp_path) as setup:
        await until(lambda: setup.agent.guarding.captures.terms.text == "full")
        headers = {"X-Sim-Fault": "nan;after_tokens=18", "X-Request-Id": "R1"}
        await setup.post(
            "/v1/chat/completions", chat(f'Say "{SAID}"', stream=True, max_tokens=64), **headers
        )
        await site.until_value("SELECT count(*) FROM captures_v1 WHERE attribution IS NOT NULL", 1)
    assert await site.depth(CAPTURES.name) == 0

    [row] = read_as(site, "gatemesh_reader", "SELECT * FROM captures_v1")
    assert (row["request_id"], row["reason"], row["hard"]) == ("R1", "nan_logits", True)
    assert (row["labels"], row["model"]) == ({"host": "h1", "gpu": "7"}, "sim")
    assert row["engine_version"]
    assert row["sampling"]["temperature"] == 0
    at_fault = [step["n"] for step in row["steps"] if step["fault"]]
    assert (at_fault, row["fault_from"], row["fault_until"]) == ([18], 18, 19)
    clean = [step for step in row["steps"] if step["n"] < 18]
    assert [step["n"] for step in clean] == list(range(18))
    assert all(step["entropy"] is not None and len(step["top"]) == 5 for step in clean)
    assert row["has_text"]
    assert row["redactions"]["customer"] >= 1
    texts = "SELECT * FROM capture_texts_v1"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        read_as(site, "gatemesh_reader", texts)
    [words] = read_as(site, "gatemesh_evidence", texts)
    assert words["prompt"].startswith('user: Say "Dear [customer], we have written to [email]')
    assert words["answer"].startswith("Dear [customer], we")
    assert len(words["tokens"]) == len(row["steps"])

    with Store(site.database_url) as store:
        [listed] = found(store, row["capture_id"][:8], None, None, limit=1)
        assert texts_of(store, listed)[0] == words

    stored = str(site.rows("SELECT captures::text FROM captures"))
    told = stored + "".join(capfd.readouterr())
    assert not [secret for secret in SECRETS if secret in told]
