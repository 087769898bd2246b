"""Proofs on a real broker: a queue of their own, past all that is only counted."""

import asyncio
import subprocess
from pathlib import Path

import pytest
from aiormq.abc import FieldTable

from gatemesh_common.broker import (
    COMMANDS,
    DEAD_LETTERS,
    PROOFS,
    SHARDING,
    VERDICTS,
    bind_proofs,
    shard_queue,
)
from gatemesh_common.message import LANE_HEADER, PROOF_LANE
from gatemesh_common.messages import CheckLevel, Verdict
from gatemesh_health_manager.shards import declare_shards

from .conftest import Site, verdict

pytestmark = pytest.mark.integration

SHARDS = 4
MANY = 4000
AT_ONCE = """
[defaults.condition_b]
playbook = "restart"
"""
"""A proof is answered by a command, and nobody confirms it first."""
PROVEN = "SELECT count(*) FROM verdicts WHERE hard AND outcome = 'failed'"
COUNTED = "SELECT count(*) FROM verdicts WHERE check_level = 'L4'"


def proof(name: str = "engine-0", number: int = 0) -> Verdict:
    """Return a hard failure."""
    request_id = f"proof-{name}-{number}"
    return verdict(name, CheckLevel.L3, hard=True, reason="nan_logits", request_id=request_id)


async def publish_others(site: Site, count: int, name: str = "engine-1") -> None:
    """Publish verdicts that decide nothing."""
    said = [
        verdict(name, CheckLevel.L4, outcome="passed", request_id=f"r{n}") for n in range(count)
    ]
    for start in range(0, count, 500):
        await asyncio.gather(*map(site.publisher.publish, said[start : start + 500]))


async def depths(site: Site, shards: int = 0) -> tuple[int, int, int]:
    """Return how many wait among proofs, in the queue of all, and in shards."""
    sharded = [await site.depth(shard_queue(n).name) for n in range(shards)]
    return await site.depth(PROOFS.name), await site.depth(VERDICTS.name), sum(sharded)


@pytest.mark.parametrize("shards", [0, SHARDS])
async def test_a_proof_waits_in_one_queue_only(site: Site, shards: int) -> None:
    """And no other verdict does; shards or not."""
    if shards:
        await declare_shards(site.amqp_url, shards)
    await bind_proofs(await site.publisher.channel())
    await site.publisher.publish(proof())
    assert await depths(site, shards) == (1, 0, 0)
    await site.publisher.publish(verdict("engine-0"))
    await site.publisher.publish(verdict("engine-0", hard=True, outcome="passed"))
    # Of a person, or of an agent of the release before: it is a proof, and names no lane.
    await site.alert(proof().model_dump_json().encode())
    assert await depths(site, shards) == ((1, 1, 2) if shards else (1, 3, 0))


@pytest.mark.parametrize("shards", [0, SHARDS])
async def test_without_a_reader_of_proofs_they_go_where_all_go(site: Site, shards: int) -> None:
    """A manager of the release before reads that queue; nothing is returned, nothing lost."""
    if shards:
        await declare_shards(site.amqp_url, shards)
    await site.publisher.publish(proof())
    assert await depths(site, shards) == (0, 1, 0)


async def test_proofs_wait_for_the_next_manager(site: Site) -> None:
    """Where they were led to; with the verdicts of before in the queue of all."""
    await site.publisher.publish(proof("engine-9"))
    manager = await site.start_ready()
    await site.bring_up("engine-0", "engine-1")
    await site.until_value(PROVEN, 1)
    manager.kill()
    manager.wait(30)
    await site.publisher.publish(proof())
    assert await site.depth(PROOFS.name) == 1
    await site.start_ready()
    await site.until_state("engine-0", "ejected")
    await site.until_value(PROVEN, 2)
    assert await depths(site) == (0, 0, 0)
    assert await site.depth(DEAD_LETTERS) == 0


@pytest.mark.parametrize("shards", ["1", str(SHARDS)])
async def test_a_command_does_not_wait_for_what_is_counted(
    site: Site, shards: str, tmp_path: Path
) -> None:
    """Thousands came before the proof; its command comes while they are still read."""
    manager = await site.start_ready()
    await site.bring_up("engine-0", "engine-1")
    await end_flight(site)
    await ended(manager)
    await site.commands()
    if shards != "1":
        await declare_shards(site.amqp_url, SHARDS)
    await publish_others(site, MANY)
    await site.publisher.publish(proof())
    policy = tmp_path / "policy.toml"
    policy.write_text(AT_ONCE)
    site.start(
        GATEMESH_HEALTH_MANAGER_VERDICT_SHARDS=shards,
        GATEMESH_HEALTH_MANAGER_VERDICT_PREFETCH="100",
        GATEMESH_HEALTH_MANAGER_POLICY_FILE=str(policy),
    )
    await site.until(lambda: has_command(site))
    assert site.value(COUNTED) < MANY / 2
    assert await site.commands() == ["drain engine-0"]
    await site.until_value(COUNTED, MANY)


async def end_flight(site: Site) -> None:
    """Have the command that brought an instance in expire: the next one would wait for its end."""
    due = "UPDATE instances SET flight_due_at = now() WHERE instance_id = 'engine-0' RETURNING 1"
    site.rows(due)
    expired = "SELECT count(*) FROM commands WHERE instance_id = 'engine-0' AND status = 'expired'"
    await site.until_value(expired, 1)
    await site.until_value("SELECT count(*) FROM outbox", 0)


async def ended(manager: "subprocess.Popen[bytes]") -> None:
    """Have a manager stop in order."""
    manager.terminate()
    assert await asyncio.to_thread(manager.wait, 60) == 0


async def has_command(site: Site) -> bool:
    """Tell whether the executor is asked for something."""
    return await site.depth(COMMANDS.name) > 0


async def test_two_managers_read_proofs_side_by_side(site: Site) -> None:
    """Each of them is applied once, also when one manager dies."""
    first = await site.start_ready()
    site.start(GATEMESH_HEALTH_MANAGER_ADMIN_PORT="0")
    channel = await site.publisher.channel()

    async def two_read() -> bool:
        declared = await channel.declare_queue(PROOFS.name, passive=True)
        return declared.declaration_result.consumer_count == 2

    await site.until(two_read)
    await asyncio.gather(*(site.publisher.publish(proof("engine-0", n)) for n in range(200)))
    first.kill()
    first.wait(30)
    await asyncio.gather(*(site.publisher.publish(proof("engine-1", n)) for n in range(200)))
    await site.until_value(PROVEN, 400)
    assert site.value("SELECT count(DISTINCT message_id) FROM verdicts") == 400
    assert await site.depth(DEAD_LETTERS) == 0


async def test_a_queue_of_proofs_that_is_deleted_ends_the_process(site: Site) -> None:
    """Meanwhile proofs go to the queue of all; the next manager declares and binds it again."""
    manager = await site.start_ready()
    channel = await site.publisher.channel()
    await channel.queue_delete(PROOFS.name)
    assert await asyncio.to_thread(manager.wait, 60) == 70
    await site.publisher.publish(proof())
    assert await site.depth(VERDICTS.name) == 1
    await site.start_ready()
    await site.until_value(PROVEN, 1)
    queue = await channel.get_queue(PROOFS.name)
    lane: FieldTable = {"x-match": "all", LANE_HEADER: PROOF_LANE}
    await queue.unbind(SHARDING, "", arguments=lane)
    await site.publisher.publish(proof(number=1))
    await site.until_value(PROVEN, 2)
