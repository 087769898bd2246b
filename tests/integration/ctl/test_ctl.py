"""The operator's command line with a real broker, database and manager."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel

from gatemesh_common.broker import DEAD_LETTERS, REQUESTS, declare_topology
from gatemesh_common.messages import (
    DEAD,
    ActionRequest,
    CheckLevel,
    CommandReport,
    TelemetryWindow,
    Verdict,
)
from gatemesh_common.publisher import Publisher
from gatemesh_ctl.asking import send_request
from gatemesh_ctl.errors import UnreachableError

from .conftest import POOL, CommandLine, ObedientExecutor

pytestmark = pytest.mark.integration


async def until_known(ctl: CommandLine, count: int) -> None:
    """Wait until the manager knows so many instances."""
    async with asyncio.timeout(40):
        while True:
            answer = await ctl.call("instances", "--json")
            if answer.code == 0 and len(answer.json) == count:
                return
            await asyncio.sleep(0.1)


async def test_a_drain_is_asked_for_followed_and_found_in_every_view(
    ctl: CommandLine, executor: ObedientExecutor
) -> None:
    """What happened is told by each command, to people and to programs."""
    await until_known(ctl, 2)
    verdict = Verdict(
        timestamp=datetime.now(UTC),
        instance_id="engine-0",
        request_id="r-1",
        check_level=CheckLevel.L1,
    )
    await executor.publisher.publish(verdict)
    drained = await ctl.call(
        *("request", "drain", "engine-0", "--reason", "noise", "--by", "ann", "--wait", "--json")
    )
    assert drained.code == 0, drained.err + drained.out
    assert drained.json["ending"] == "done"
    assert {"command", "step", "report"} <= {row["kind"] for row in drained.json["timeline"]}

    [row] = [it for it in (await ctl.call("instances", "--json")).json if not it["running"]]
    assert (row["instance_id"], row["state"], row["pool"]) == ("engine-0", "quarantined", POOL)
    [incident] = (await ctl.call("incidents", "--json")).json
    assert (incident["condition"], incident["status"]) == ("operator", "quarantined")
    shown = await ctl.call("incidents", incident["incident_id"][:8], "--json")
    assert shown.json["incident_id"] == incident["incident_id"]
    assert shown.json["timeline"]
    [command] = (await ctl.call("commands", "--instance", "engine-0", "--json")).json
    assert (command["action"], command["status"]) == ("drain", "succeeded")
    [seen] = (await ctl.call("verdicts", "--level", "l1", "--json")).json
    assert seen["request_id"] == "r-1"
    assert (await ctl.call("verdicts", "--outcome", "passed", "--json")).json == []
    events = (await ctl.call("timeline", "--instance", "engine-0", "--json")).json
    assert [it["at"] for it in events] == sorted(it["at"] for it in events)
    for words in (("instances",), ("incidents",), ("commands",), ("verdicts",), ("timeline",)):
        answer = await ctl.call(*words)
        assert "engine-0" in answer.out, words
    status = await ctl.call("status", "--json")
    assert status.code == 0
    assert status.json["pools"][0]["instances"] == 2
    assert {it["queue"] for it in status.json["queues"]} >= {REQUESTS.name, DEAD_LETTERS}
    await is_explained(ctl, incident["incident_id"])
    await is_watched(ctl)
    await is_looked_at(ctl)


async def is_explained(ctl: CommandLine, incident_id: str) -> None:
    """The drain is told with who asked, what was done, how long it took and how it ended."""
    told = await ctl.call("explain", incident_id[:10], "--json")
    assert told.code == 0, told.err
    assert set(told.json["words"]) >= {"why", "brakes", "steps", "states", "end"}
    assert told.json["commands"][0]["action"] == "drain"
    text = (await ctl.call("explain", incident_id)).out
    for words in ("ann, the broker's user", "because: noise", "drain (fence", "Quarantined after"):
        assert words in text
    assert (await ctl.call("explain", "none")).code == 2


async def is_watched(ctl: CommandLine) -> None:
    """Lines of what happened last, for people and for programs."""
    lines = (await ctl.call("watch", "--for-s", "0", "--json")).out.splitlines()
    kinds = {json.loads(line)["kind"] for line in lines}
    assert {"state", "command", "report"} <= kinds
    shown = await ctl.call("watch", "--for-s", "0", "--instance", "engine-0")
    assert shown.code == 0
    assert all("engine-0" in line for line in shown.out.splitlines())
    assert shown.err == ""


async def is_looked_at(ctl: CommandLine) -> None:
    """A doctor finds the manager at work, and that there are no shadow and no engine."""
    found = await ctl.call("doctor", "--json")
    assert found.code == 3, found.out
    levels: dict[str, set[str]] = {}
    for one in found.json["findings"]:
        levels.setdefault(one["check"], set()).add(one["level"])
        assert one["cure"] or one["level"] == "ok"
    well = ("topology", "permissions", "database", "migrations", "policy", "instances", "clock")
    lacking = ("shadow", "engines")
    expected = {check: {"ok"} for check in (*well, "health_manager", "executor")}
    expected |= {check: {"warning"} for check in lacking}
    assert {check: levels[check] for check in expected} == expected


async def test_a_refusal_is_told_with_its_reason(
    ctl: CommandLine, executor: ObedientExecutor
) -> None:
    """And the exit code says it to scripts."""
    await until_known(ctl, 2)
    answer = await ctl.call("request", "release", "engine-0", "--wait", "--wait-s", "20")
    assert answer.code == 1
    assert "refused: " in answer.out
    assert "quarantined" in answer.out


async def test_a_dry_run_says_what_would_happen_and_does_nothing(
    ctl: CommandLine, executor: ObedientExecutor
) -> None:
    """The manager is asked, the history tells it apart, no command is sent."""
    await until_known(ctl, 2)
    answer = await ctl.call("request", "drain", "engine-0", "--dry-run")
    assert answer.code == 0
    assert "nothing was done; it would: engine-0: probation -> draining" in answer.out
    refused = await ctl.call("request", "release", "engine-0", "--dry-run")
    assert refused.code == 1
    rows = (await ctl.call("instances", "--json")).json
    assert {row["state"] for row in rows} == {"probation"}
    drains = [
        row for row in (await ctl.call("commands", "--json")).json if row["action"] == "drain"
    ]
    assert drains == []


async def test_a_forgery_is_shown_and_its_name_becomes_no_instance(
    ctl: CommandLine, executor: ObedientExecutor
) -> None:
    """What the sender wrote may be anything."""
    await until_known(ctl, 2)
    facts = {
        "timestamp": datetime.now(UTC),
        "instance_id": "nobody's",
        "command_id": "any",
        "action": "drain",
        "incarnation": 1,
        "fence": 1000,
        "outcome": "refused",
        "reason": "unknown_key: '0123456789abcdef'",
        "ends_command": False,
    }
    await executor.publisher.publish(CommandReport.model_validate(facts))
    async with asyncio.timeout(40):
        while not (found := (await ctl.call("refused", "--json")).json):  # noqa: ASYNC110 (a view)
            await asyncio.sleep(0.1)
    [row] = found
    assert (row["reason"], row["detail"]) == ("unknown_key", "'0123456789abcdef'")
    assert "nobody's" in (await ctl.call("refused", "--instance", "nobody's")).out
    await until_known(ctl, 2)


async def test_a_pool_is_paused(ctl: CommandLine, executor: ObedientExecutor) -> None:
    """The only pool needs no name."""
    await until_known(ctl, 2)
    answer = await ctl.call("request", "pause", "--wait", "--wait-s", "20")
    assert answer.code == 0, answer.out + answer.err
    assert (await ctl.call("status", "--json")).json["pools"][0]["paused"]


async def test_a_brake_that_is_not_on_is_not_reset(
    ctl: CommandLine, executor: ObedientExecutor
) -> None:
    """The manager says so; a missing choice is told before anything is sent."""
    await until_known(ctl, 2)
    answer = await ctl.call("request", "reset_brake", "--backlog", "skip", "--wait")
    assert answer.code == 1
    assert "the fleet brake of this pool is not on" in answer.out
    unclear = await ctl.call("request", "reset_brake")
    assert unclear.code == 2
    assert "--backlog skip" in unclear.err
    assert not (await ctl.call("status", "--json")).json["pools"][0]["braked"]


async def test_wrong_words_are_told(ctl: CommandLine, executor: ObedientExecutor) -> None:
    """Each with what would be right."""
    await until_known(ctl, 2)
    cases = {
        ("request", "restart", "engine-9"): "known instances: engine-0, engine-1",
        ("request", "restart"): "needs an instance",
        ("request", "restart", "engine-0", "--pool", "code"): "in pool 'chat'",
        ("request", "pause", "--pool", "code"): "known pools: chat",
        ("timeline", "--instance", "engine-9"): "known instances",
        ("incidents", "none"): "there is no incident 'none'",
    }
    for words, text in cases.items():
        answer = await ctl.call(*words)
        assert answer.code == 2, words
        assert text in answer.err
        assert "Traceback" not in answer.err


async def test_a_request_is_on_the_broker_when_its_id_is_printed(
    ctl: CommandLine, executor: ObedientExecutor
) -> None:
    """The manager may come later; the operator can go."""
    await until_known(ctl, 2)
    answer = await ctl.call("request", "quarantine", "engine-1", "--json")
    assert answer.code == 0
    async with asyncio.timeout(20):
        found: list[object] = []
        while not found:
            found = (await ctl.call("incidents", "--instance", "engine-1", "--json")).json


async def test_an_empty_database_says_what_to_do(ctl: CommandLine) -> None:
    """Before the first migration."""
    answer = await ctl.call("instances")
    assert answer.code == 2
    assert "python -m gatemesh_health_manager migrate" in answer.err


async def test_dead_letters_are_shown_and_stay(ctl: CommandLine, vhost_url: str) -> None:
    """However often somebody looks, in their order."""
    async with Publisher(vhost_url, "test") as publisher:
        channel = await publisher.channel()
        await declare_topology(channel)
        for number in range(3):
            body = Message(
                b'{"n": %d}' % number,
                message_id=f"m-{number}",
                delivery_mode=DeliveryMode.PERSISTENT,
                headers={"x-gatemesh-reason": "because", "x-gatemesh-queue": "q"},
            )
            await publisher.publish_raw(body, DEAD, "q", mandatory=True)
        for _ in range(8):
            answer = await ctl.call("dead-letters", "--json")
            assert sorted(it["message_id"] for it in answer.json) == ["m-0", "m-1", "m-2"]
            assert {it["reason"] for it in answer.json} == {"because"}
        first = await ctl.call("dead-letters", "--limit", "1", "--body", "--json")
        assert len(first.json) == 1
        async with asyncio.timeout(20):
            # The broker counts what was given back a moment later.
            while await letters_on(channel) != 3:  # noqa: ASYNC110 (a queue)
                await asyncio.sleep(0.05)


async def letters_on(channel: AbstractChannel) -> int | None:
    """Return how many dead letters there are."""
    queue = await channel.declare_queue(DEAD_LETTERS, passive=True)
    return queue.declaration_result.message_count


async def test_without_dead_letters_there_is_nothing_to_show(
    ctl: CommandLine, vhost_url: str
) -> None:
    """And a broker that no service has used yet says so."""
    answer = await ctl.call("dead-letters")
    assert answer.code == 2
    assert "no queue gatemesh.dead.letters" in answer.err
    async with Publisher(vhost_url, "test") as publisher:
        await declare_topology(await publisher.channel())
    assert (await ctl.call("dead-letters")).out == "nothing to show\n"


async def test_what_does_not_answer_is_told(tmp_path: Path) -> None:
    """With the place, and never the password."""
    ctl = CommandLine(
        GATEMESH_AMQP_URL="amqp://u:secret@127.0.0.1:1/",
        GATEMESH_DATABASE_URL="postgresql://u:secret@127.0.0.1:1/d",
        GATEMESH_STATE=str(tmp_path),
    )
    for words in (("instances",), ("dead-letters",), ("status",), ("doctor",)):
        answer = await ctl.start(*words)
        assert answer.code == 1
        assert "127.0.0.1:1 does not answer" in answer.err + answer.out
        assert "secret" not in answer.err + answer.out
        assert "Traceback" not in answer.err


async def test_a_request_that_the_broker_does_not_confirm_is_told() -> None:
    """With the setting, and never the password."""
    request = ActionRequest(timestamp=datetime.now(UTC), action="pause", requested_by="ann")
    with pytest.raises(UnreachableError, match="GATEMESH_AMQP_URL") as caught:
        await send_request("amqp://u:secret@127.0.0.1:1/", request)
    assert "secret" not in str(caught.value)


async def test_unguarded_traffic_is_shown(ctl: CommandLine, executor: ObedientExecutor) -> None:
    """Summed up over instances and agents, with a line that a person cannot miss."""
    now = datetime.now(UTC)
    for agent in ("agent-0", "agent-1"):
        window = TelemetryWindow(
            timestamp=now,
            pool=POOL,
            instance_id="engine-0",
            agent_id=agent,
            incarnation=1,
            window_start=now,
            window_end=now,
            requests=10,
            tokens=200,
            unguarded=2,
        )
        await executor.publisher.publish(window)
    expected = [{"pool": POOL, "requests": 20, "tokens": 400, "unguarded": 4}]
    async with asyncio.timeout(40):
        while True:
            if (await ctl.call("status", "--json")).json.get("traffic") == expected:
                break
            await asyncio.sleep(0.1)
    shown = await ctl.call("status")
    assert f"pool {POOL}: 4 of 20 answers within an hour passed unguarded" in shown.out
