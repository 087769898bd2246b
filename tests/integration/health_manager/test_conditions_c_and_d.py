"""Conditions C and D, attribution and probe tickets between a real broker and a real database."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gatemesh_common.messages import (
    CheckLevel,
    CommandReport,
    TelemetryWindow,
    Verdict,
    derived_id,
)

from .conftest import Site, verdict

pytestmark = pytest.mark.integration

QUICK = """
[defaults.condition_c]
shift_s = 1

[defaults.probes]
every_requests = 100
min_gap_s = 0
retry_after_s = 0.1

[defaults.restart]
back_off_s = [0]
"""
REPAIR = QUICK + "\n[defaults.repair]\nenabled = true\n"


async def start(site: Site, folder: Path, rules: str = QUICK) -> None:
    """Start a manager with quick rules, and bring two instances into rotation."""
    path = folder / "policy.toml"
    path.write_text(rules)
    await site.start_ready(GATEMESH_HEALTH_MANAGER_POLICY_FILE=str(path))
    await site.bring_up("engine-0", "engine-1")
    for name in ("engine-0", "engine-1"):
        await report(site, name)


def shadow(number: int, outcome: str = "failed", **fields: Any) -> Verdict:
    """Return what the shadow says about an answer of `engine-0`."""
    return verdict(
        "engine-0",
        CheckLevel.L4,
        request_id=f"sample-{number}",
        prompt_fingerprint=f"prompt-{number}",
        type="shadow",
        outcome=outcome,
        reason="replica_disagrees" if outcome == "failed" else "clean",
        **fields,
    )


async def publish(site: Site, *verdicts: Verdict) -> None:
    """Publish verdicts, and wait until they are stored."""
    for each in verdicts:
        await site.publisher.publish(each)
    ids = ", ".join(f"'{each.message_id}'" for each in verdicts)
    wanted = len({each.message_id for each in verdicts})
    await site.until_value(f"SELECT count(*) FROM verdicts WHERE message_id IN ({ids})", wanted)  # noqa: S608


async def report(
    site: Site, name: str, outcome: str = "succeeded", *, life: str | None = None, reason: str = ""
) -> str:
    """Report the command in flight as an executor does; return its action."""
    query = f"SELECT count(*) FROM commands WHERE instance_id = '{name}' AND status = 'in_flight'"  # noqa: S608
    await site.until_value(query, 1)
    [(command_id, action, fence, incarnation)] = site.rows(
        "SELECT command_id, action, fence, incarnation FROM commands "  # noqa: S608
        f"WHERE instance_id = '{name}' AND status = 'in_flight'"
    )
    message = CommandReport(
        message_id=derived_id(command_id, "report"),
        timestamp=datetime.now(UTC),
        instance_id=name,
        command_id=command_id,
        action=action,
        incarnation=incarnation,
        fence=fence,
        outcome=outcome,
        reason=reason,
        life_id=life,
    )
    await site.publisher.publish(message)
    ended = f"SELECT status FROM commands WHERE command_id = '{command_id}'"  # noqa: S608
    await site.until_value(ended, outcome)
    return str(action)


async def purpose(site: Site, name: str = "engine-0") -> str | None:
    """Return what an instance is probed for, if it is."""
    query = f"SELECT probes_asked_for FROM instance_health_v1 WHERE instance_id = '{name}'"  # noqa: S608
    found = site.value(query)
    return None if found is None else str(found)


def incidents(site: Site) -> list[tuple[Any, ...]]:
    """Return what people read of incidents."""
    return site.rows("SELECT condition, status, playbook FROM incidents_v1 ORDER BY opened_at")


async def test_condition_c_shifts_drains_restarts_and_readmits(site: Site, tmp_path: Path) -> None:
    """Two disagreements do nothing; the third, after a restart of the manager, acts."""
    await start(site, tmp_path)
    two = [shadow(1), shadow(2), shadow(3, "skipped")]
    await publish(site, *two, *two)
    assert incidents(site) == []
    site.kill_all()
    await site.start_ready(GATEMESH_HEALTH_MANAGER_POLICY_FILE=str(tmp_path / "policy.toml"))
    await publish(site, shadow(4))
    weight = "SELECT weight::text FROM instances WHERE instance_id = 'engine-0'"
    assert (site.value(weight), incidents(site)) == ("0.1", [("C", "open", "shift")])
    await site.until_state("engine-0", "draining")
    assert await report(site, "engine-0") == "drain"
    assert await report(site, "engine-0", life="engine-0-life-2") == "restart"
    await site.until_state("engine-0", "probation")
    await site.answer_probes("engine-0")
    await site.until_state("engine-0", "healthy")
    assert incidents(site) == [("C", "resolved", "shift")]
    triggers = site.rows(
        "SELECT trigger FROM transitions_v1 WHERE instance_id = 'engine-0' ORDER BY id OFFSET 2"
    )
    assert [trigger for (trigger,) in triggers] == [
        "doubted",
        "condemned",
        "drained",
        "started",
        "probes_passed",
    ]


async def test_a_pass_between_and_copies_keep_the_instance(site: Site, tmp_path: Path) -> None:
    """A streak is broken by a pass, by its own time, and one prompt is no streak."""
    await start(site, tmp_path)
    await publish(site, shadow(1), shadow(2))
    late = shadow(3)
    await publish(site, shadow(9, "passed"))
    await publish(site, late)
    same = [shadow(n, message_id=f"copy-{n}") for n in range(4, 8)]
    await publish(site, *(each.model_copy(update={"prompt_fingerprint": "x"}) for each in same))
    assert incidents(site) == []
    await publish(site, shadow(20), shadow(21))
    assert incidents(site) == [("C", "open", "shift")]


async def test_condition_d_ejects_replaces_and_readmits(site: Site, tmp_path: Path) -> None:
    """Two tickets in a row fail: out, replaced after one bad download, proven, back."""
    await start(site, tmp_path)
    await site.publisher.publish(telemetry(100))
    await asked(site, "routine")
    await site.answer_probes("engine-0", "failed")
    await asked(site, "suspicion")
    await site.answer_probes("engine-0", "failed")
    await site.until_state("engine-0", "ejected")
    assert await report(site, "engine-0") == "eject"
    await site.until_state("engine-0", "replacing")
    refused = "weights_refused: nan in model.layers.3"
    assert await report(site, "engine-0", "failed", reason=refused) == "replace"
    [(state, reason)] = site.rows(
        "SELECT i.state, c.reason FROM instances i JOIN incidents c USING (instance_id)"
    )
    assert (state, reason) == ("replacing", f"replacement failed: {refused}")
    assert await report(site, "engine-0", life="engine-0-life-2") == "replace"
    await site.until_state("engine-0", "probation")
    await site.answer_probes("engine-0")
    await site.until_state("engine-0", "healthy")
    assert incidents(site) == [("D", "resolved", "replace")]
    assert await site.commands() == [
        *["readmit engine-0", "readmit engine-1"],
        *["eject engine-0", "replace engine-0", "replace engine-0", "readmit engine-0"],
    ]


def telemetry(requests: int) -> TelemetryWindow:
    """Return what an agent saw of `engine-0` just now."""
    now = datetime.now(UTC)
    return TelemetryWindow(
        timestamp=now,
        pool="default",
        instance_id="engine-0",
        agent_id="agent",
        incarnation=1,
        window_start=now,
        window_end=now,
        requests=requests,
    )


async def asked(site: Site, wanted: str) -> None:
    """Wait until `engine-0` is probed for something, and see that it goes on serving."""
    query = "SELECT max(probes_asked_for) FROM instance_health_v1 WHERE instance_id = 'engine-0'"
    await site.until_value(query, wanted)
    assert site.value("SELECT bool_and(in_rotation) FROM instance_health_v1")


async def test_a_ticket_of_a_serving_instance_is_in_the_table(site: Site, tmp_path: Path) -> None:
    """Agents read it there; its first answer counts and takes it back."""
    await start(site, tmp_path)
    channel = await site.publisher.channel()
    queue = await channel.declare_queue(exclusive=True)
    await queue.bind("vllm_health_event", "routing.v1.#")
    await site.publisher.publish(telemetry(100))
    async with queue.iterator(no_ack=True, timeout=30) as tables:
        async for message in tables:
            rows = {row["instance_id"]: row for row in json.loads(message.body)["instances"]}
            if rows["engine-0"].get("probe"):
                break
    assert rows["engine-0"]["state"] == "healthy"
    assert rows["engine-0"]["weight"] > 0
    ticket = rows["engine-0"]["probe"]["ticket_id"]
    answers = [
        verdict("engine-0", CheckLevel.L5, request_id=ticket, outcome=outcome)
        for outcome in ("passed", "failed", "failed")
    ]
    for answer in answers:
        await publish(site, answer)
    assert incidents(site) == []
    query = "SELECT streaks #> '{d,failures}' FROM instances WHERE instance_id = 'engine-0'"
    assert site.value(query) == []


async def test_suites_published_by_hand_count(site: Site, tmp_path: Path) -> None:
    """Without a ticket; a passed one between breaks the streak."""
    await start(
        site, tmp_path, QUICK.replace("[defaults.probes]", "[defaults.probes]\nenabled = false")
    )
    for outcome in ("failed", "passed", "failed"):
        await publish(site, verdict("engine-0", CheckLevel.L5, outcome=outcome))
    assert incidents(site) == []
    await publish(site, verdict("engine-0", CheckLevel.L5))
    await site.until_state("engine-0", "ejected")
    assert incidents(site) == [("D", "open", "replace")]


async def test_proof_in_a_suite_breaks_condition_b(site: Site, tmp_path: Path) -> None:
    """No client's prompt can be to blame."""
    await start(site, tmp_path)
    details = {"faults": {"arithmetic": "nan_logits"}}
    await publish(site, verdict("engine-0", CheckLevel.L5, details=details))
    await site.until_state("engine-0", "ejected")
    assert incidents(site) == [("B", "open", "confirm")]
    assert await purpose(site) == "confirm"


async def test_the_requests_own_faults_are_shown_and_count_for_nothing(
    site: Site, tmp_path: Path
) -> None:
    """The score stays; after a proof the instance is probed."""
    await start(site, tmp_path)
    own = [verdict("engine-0", request_id=f"r{n}", attribution="request") for n in range(8)]
    score = "SELECT score > 89 FROM instance_health_v1 WHERE instance_id = 'engine-0'"
    await publish(site, *own)
    assert (site.value(score), await purpose(site), incidents(site)) == (True, None, [])
    hard = verdict("engine-0", CheckLevel.L3, hard=True, attribution="request")
    await publish(site, hard)
    assert (site.value(score), await purpose(site), incidents(site)) == (True, "suspicion", [])
    shown = "SELECT attribution, count(*) FROM verdicts_v1 WHERE check_level < 'L4' GROUP BY 1"
    assert site.rows(shown) == [("request", 9)]
    told = site.rows("SELECT DISTINCT detail FROM timeline_v1 WHERE what LIKE 'L1 failed%'")
    assert told == [("reported (the request's)",)]


async def test_a_repair_spares_the_restart(site: Site, tmp_path: Path) -> None:
    """Out, repaired in place, proven, back, on the same life."""
    await start(site, tmp_path, REPAIR)
    await publish(site, shadow(1), shadow(2), shadow(3))
    await site.until_state("engine-0", "ejected")
    assert await report(site, "engine-0", life="engine-0-life-1") == "eject"
    assert await report(site, "engine-0", life="engine-0-life-1") == "repair"
    await site.until_state("engine-0", "probation")
    await site.answer_probes("engine-0")
    await site.until_state("engine-0", "healthy")
    incarnation = "SELECT incarnation FROM instances WHERE instance_id = 'engine-0'"
    assert (incidents(site), site.value(incarnation)) == ([("C", "resolved", "shift")], 1)


async def test_a_plugged_in_gate_is_stored_only(site: Site, tmp_path: Path) -> None:
    """Even as proof."""
    await start(site, tmp_path)
    flags = [
        verdict("engine-0", CheckLevel.PLUGIN, request_id=f"r{n}", hard=True, reason="flagged")
        for n in range(9)
    ]
    await publish(site, *flags)
    score = "SELECT score > 89 FROM instance_health_v1 WHERE instance_id = 'engine-0'"
    assert (site.value(score), await purpose(site), incidents(site)) == (True, None, [])


async def test_copies_of_one_prompt_cost_points_once(site: Site, tmp_path: Path) -> None:
    """Across batches and managers."""
    await start(site, tmp_path)
    score = "SELECT score FROM instance_health_v1 WHERE instance_id = 'engine-0'"
    for number in range(4):
        copies = [
            verdict(
                "engine-0", CheckLevel.L3, prompt_fingerprint="same", request_id=f"{number}-{n}"
            )
            for n in range(5)
        ]
        await publish(site, *copies)
    assert 74 <= float(site.value(score)) <= 77
    await asyncio.gather(
        *(
            publish(site, verdict("engine-0", CheckLevel.L3, request_id=f"own-{n}"))
            for n in range(2)
        )
    )
    assert float(site.value(score)) < 50
