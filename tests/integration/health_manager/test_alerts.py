"""What people and agents publish, and what becomes of it."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from gatemesh_common.broker import DEAD_LETTERS, VERDICTS
from gatemesh_common.messages import CheckLevel

from .conftest import Site, failures, verdict

pytestmark = pytest.mark.integration

MINIMAL = {
    "instance_id": "engine-0",
    "request_id": "r1",
    "timestamp": "2026-05-01T12:00:00",
    "check_level": "L2",
    "details": "perplexity through the roof",
    "type": "perplexity_spike",
}


async def test_a_minimal_alert_by_hand_is_accepted(site: Site) -> None:
    """Plain fields, any key, no id, no content type; it is of the instance's present life."""
    await site.start_ready()
    await site.bring_up("engine-0", "engine-1")
    await site.alert(json.dumps(MINIMAL).encode(), key="whatever.I.like")
    await site.until_value("SELECT count(*) FROM verdicts WHERE type = 'perplexity_spike'", 1)
    [row] = site.rows(
        "SELECT instance_id, incarnation, check_level, outcome, hard, details ->> 'text', pool "
        "FROM verdicts_v1 WHERE type = 'perplexity_spike'"
    )
    assert row == ("engine-0", 1, "L2", "failed", False, MINIMAL["details"], "default")


async def test_an_alert_names_an_instance_nobody_knows(site: Site) -> None:
    """It is visible at once, and nothing is done until the executor has observed it."""
    await site.start_ready()
    for number in range(8):
        await site.alert(json.dumps({**MINIMAL, "request_id": f"r{number}"}).encode())
    await site.until_value("SELECT count(*) FROM verdicts", 8)
    [row] = site.rows("SELECT instance_id, state, incarnation, in_rotation FROM instance_health_v1")
    assert row == ("engine-0", "starting", 0, False)
    assert await site.commands() == []
    await site.observe("engine-0")
    await site.until_state("engine-0", "probation")


async def test_who_asks_for_a_reply_gets_none(site: Site) -> None:
    """A reply would go to any queue that the publisher names, and fail where there is none."""
    await site.start_ready()
    for name in (DEAD_LETTERS, "nowhere"):
        body = json.dumps({**MINIMAL, "message_id": name}).encode()
        await site.alert(body, reply_to=name)
    await site.until_value("SELECT count(*) FROM verdicts", 2)
    await site.alert(b"{no json", content_type="application/json")
    assert len(await site.dead_letters(1)) == 1
    assert await site.depth(DEAD_LETTERS) == 0


async def test_poison_is_kept_once_and_blocks_nothing(site: Site) -> None:
    """Bad JSON, a wrong field, and what only the database can refuse."""
    await site.start_ready()
    await site.alert(b"{no json", content_type="application/json")
    await site.alert(json.dumps({**MINIMAL, "check_level": "L9"}).encode())
    too_large = {**MINIMAL, "choice": 2**40, "message_id": "guilty"}
    good = [{**MINIMAL, "message_id": f"good-{n}"} for n in range(5)]
    for body in [*good[:2], too_large, *good[2:]]:
        await site.alert(json.dumps(body).encode())
    dead = await site.dead_letters(3)
    reasons = sorted(str(letter.headers["x-gatemesh-reason"]) for letter in dead)
    assert [reason.split(":")[0] for reason in reasons] == [
        "body",
        "check_level",
        "the database refuses it",
    ]
    await site.until_value("SELECT count(*) FROM verdicts", 5)
    assert await site.depth(VERDICTS.name) == 0


async def test_what_json_can_say_and_sql_cannot_is_stored(site: Site) -> None:
    """U+0000 is what broken engines emit; the evidence must not be lost."""
    await site.start_ready()
    await site.alert(
        json.dumps({**MINIMAL, "details": {"te\x00xt": ["a\x00b", {"n": 1}]}}).encode()
    )
    await site.until_value("SELECT count(*) FROM verdicts", 1)
    assert site.value("SELECT details FROM verdicts_v1") == {"te\ufffdxt": ["a\ufffdb", {"n": 1}]}


async def test_a_message_delivered_twice_counts_once(site: Site) -> None:
    """At least once is what brokers promise."""
    await site.start_ready()
    await site.bring_up("engine-0", "engine-1")
    five = failures("engine-0", 5)
    for each in [*five, *five]:
        await site.publisher.publish(each)
    last = verdict("engine-1", request_id="last")
    await site.publisher.publish(last)
    await site.until_value("SELECT count(*) FROM verdicts WHERE request_id = 'last'", 1)
    assert site.value("SELECT count(*) FROM verdicts WHERE check_level = 'L1'") == 6
    assert site.value("SELECT count(*) FROM incidents") == 0


async def test_five_do_nothing_the_sixth_acts_across_a_restart(site: Site) -> None:
    """The window is in the database, not in the process."""
    manager = await site.start_ready()
    await site.bring_up("engine-0", "engine-1")
    await site.commands()
    for each in failures("engine-0", 5):
        await site.publisher.publish(each)
    await site.until_value("SELECT count(*) FROM verdicts WHERE check_level = 'L1'", 5)
    manager.terminate()
    assert manager.wait(30) == 0
    assert site.value("SELECT count(*) FROM incidents") == 0
    await site.start_ready()
    await site.publisher.publish(verdict("engine-0", request_id="the-sixth"))
    await site.until_state("engine-0", "draining")
    assert site.rows("SELECT condition, status FROM incidents_v1") == [("A", "open")]


async def test_five_copies_of_one_prompt_count_once(site: Site) -> None:
    """Across a restart too."""
    manager = await site.start_ready()
    await site.bring_up("engine-0", "engine-1")
    copies = failures("engine-0", 5, prompt_fingerprint="same")
    for each in copies:
        await site.publisher.publish(each)
    await site.until_value("SELECT count(*) FROM verdicts WHERE check_level = 'L1'", 5)
    manager.kill()
    manager.wait(30)
    await site.start_ready()
    for number in range(4):
        await site.publisher.publish(verdict("engine-0", request_id=f"other-{number}"))
    await site.until_value("SELECT count(*) FROM verdicts WHERE check_level = 'L1'", 9)
    assert site.value("SELECT count(*) FROM incidents") == 0
    await site.publisher.publish(verdict("engine-0", request_id="other-5"))
    await site.until_state("engine-0", "draining")


async def test_failures_further_apart_than_the_window_do_nothing(site: Site) -> None:
    """Sixty seconds by their own timestamps; one within closes the window."""
    await site.start_ready()
    await site.bring_up("engine-0", "engine-1")
    # The readmission has answered everything before it, so time is stretched into the past
    # of a life whose evidence begins earlier.
    now = datetime.now(UTC)
    with_history = "UPDATE instances SET evidence_since = now() - interval '1 hour' RETURNING 1"
    site.rows(with_history)
    early = [now - timedelta(seconds=61 + n) for n in range(5)]
    for number, moment in enumerate(early):
        await site.publisher.publish(
            verdict("engine-0", request_id=f"early-{number}", timestamp=moment)
        )
    late = verdict("engine-0", request_id="late", timestamp=now)
    await site.publisher.publish(late)
    await site.until_value("SELECT count(*) FROM verdicts WHERE check_level = 'L1'", 6)
    assert site.value("SELECT count(*) FROM incidents") == 0
    within = verdict(
        "engine-0", request_id="within", timestamp=now - timedelta(seconds=50), check_level="L2"
    )
    await site.publisher.publish(within)
    await site.until_state("engine-0", "draining")


async def test_a_hard_failure_is_out_of_the_table_within_a_second(site: Site) -> None:
    """From the verdict's arrival to the routing table that agents read."""
    await site.start_ready()
    await site.bring_up("engine-0", "engine-1")
    channel = await site.publisher.channel()
    queue = await channel.declare_queue(exclusive=True)
    await queue.bind("vllm_health_event", "routing.v1.#")
    proof = verdict("engine-0", CheckLevel.L3, hard=True, reason="nan_logits")
    await site.publisher.publish(proof)
    async with queue.iterator(no_ack=True, timeout=30) as tables:
        async for message in tables:
            table = json.loads(message.body)
            states = {row["instance_id"]: row["state"] for row in table["instances"]}
            if states["engine-0"] == "ejected":
                break
    weights = {row["instance_id"]: row["weight"] for row in table["instances"]}
    assert weights["engine-0"] == 0
    assert 0.3 <= weights["engine-1"] <= 0.9
    seconds = "SELECT extract(epoch FROM t.at - v.received_at) FROM transitions t, verdicts v"
    assert site.value(f"{seconds} WHERE t.after_state = 'ejected' AND v.hard") < 1
