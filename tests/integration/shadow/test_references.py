"""Who of two is damaged, and whether the only one is: kept references against real services."""

from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from tests.integration.shadow.conftest import ShadowProcess, Start, World

from gatemesh_common.messages import InstanceState, Outcome, Reason, Verdict

pytestmark = pytest.mark.integration

CALIBRATED = 'gatemesh_shadow_calibrated{pool="default"} 1.0'
QUESTIONS = ("Tell me about bread.", "Why do leaves fall?", "What is a lighthouse for?")

Damage = Callable[[str, str], Awaitable[None]]


@pytest.fixture
async def damage(world: World) -> AsyncIterator[Damage]:
    """Damage an engine from now on; all answers and all scores of it."""
    async with aiohttp.ClientSession() as session:

        async def do(name: str, fault: str) -> None:
            url = world.engines.urls[name] + "/sim/fault"
            async with session.post(url, json={"fault": fault}) as response:
                assert response.status == 200

        yield do


async def calibrated(world: World, start_shadow: Start) -> ShadowProcess:
    """A shadow that has measured two healthy engines."""
    shadow = start_shadow(calibrate="true")
    await world.route("engine-0", "engine-1")
    await shadow.until_page("/metrics", lambda _, text: CALIBRATED in text)
    return shadow


async def judged(world: World, name: str) -> list[Verdict]:
    """One verdict for each of some answers of an engine."""
    found = []
    for question in QUESTIONS:
        await world.send(await world.ask(name, question))
        found.append(await world.verdict())
    return found


@pytest.mark.parametrize("fault", ["corpus:norm_x4", "salad"])
async def test_a_damaged_judge_is_named(
    world: World, start_shadow: Start, damage: Damage, fault: str
) -> None:
    """Of two that accuse each other; nothing is said of the one that is well."""
    await calibrated(world, start_shadow)
    await damage("engine-0", fault)
    for verdict in await judged(world, "engine-1"):
        assert (verdict.instance_id, verdict.outcome) == ("engine-0", Outcome.FAILED)
        assert verdict.reason is Reason.REPLICA_DISAGREES
        assert verdict.details["as_judge"] is True
        assert verdict.details["by"] == "references"
        assert verdict.details["limits"] == "calibrated"
        assert verdict.incarnation == 1
    # Its own answers are judged by the one that is well.
    await world.route("engine-0", "engine-1")
    for verdict in await judged(world, "engine-0"):
        assert (verdict.instance_id, verdict.outcome) == ("engine-0", Outcome.FAILED)


@pytest.mark.parametrize("fault", ["corpus:norm_x4", "salad"])
async def test_a_damaged_accused_is_named(
    world: World, start_shadow: Start, damage: Damage, fault: str
) -> None:
    """The judge bears out its references, and the verdict says so."""
    await calibrated(world, start_shadow)
    await damage("engine-1", fault)
    for verdict in await judged(world, "engine-1"):
        assert (verdict.instance_id, verdict.outcome) == ("engine-1", Outcome.FAILED)
        assert verdict.details["corroborated_by"] == "references"
        assert verdict.details["judge"] == "engine-0"


async def test_the_only_one_is_held_to_its_references(world: World, start_shadow: Start) -> None:
    """After a restart of the shadow, from its file, which it wrote while there were two."""
    shadow = await calibrated(world, start_shadow)
    assert shadow.stop() == 0
    await world.route("engine-1")
    await start_shadow().ready()
    await world.send(await world.ask("engine-1", QUESTIONS[0]))
    verdict = await world.verdict()
    assert (verdict.instance_id, verdict.outcome) == ("engine-1", Outcome.PASSED)
    assert verdict.details["measure"] == "references"
    assert "engine-0" not in verdict.model_dump_json()


async def test_the_only_one_is_named_when_it_is_damaged(
    world: World, start_shadow: Start, damage: Damage
) -> None:
    """Nobody else is there to judge it."""
    shadow = await calibrated(world, start_shadow)
    await damage("engine-1", "corpus:norm_x4")
    doubted = {"engine-0": InstanceState.SUSPECT}
    await world.route("engine-0", "engine-1", states=doubted)
    ours = len(world.engines.asked["engine-0"])
    await world.send(await world.ask("engine-1", QUESTIONS[0]))
    verdict = await world.verdict()
    assert (verdict.instance_id, verdict.outcome) == ("engine-1", Outcome.FAILED)
    assert (verdict.details["measure"], verdict.details["failed"]) == ("references", 3)
    assert verdict.prompt_fingerprint is None
    assert len(world.engines.asked["engine-0"]) == ours
    deviates = 'gatemesh_shadow_reference_rounds_total{standing="deviates"} 1.0'
    await shadow.until_page("/metrics", lambda _, text: deviates in text)


async def test_without_references_the_verdict_says_so(world: World, start_shadow: Start) -> None:
    """Never calibrated: one word against another."""
    shadow = start_shadow()
    await world.route("engine-0", "engine-1")
    await shadow.ready()
    await world.send(await world.ask("engine-1", QUESTIONS[0], fault="salad"))
    verdict = await world.verdict()
    assert (verdict.instance_id, verdict.outcome) == ("engine-1", Outcome.FAILED)
    assert verdict.details["corroborated"] is False
