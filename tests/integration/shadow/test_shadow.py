"""The shadow as a process between a real broker and simulated engines."""

import json
import signal

import aio_pika
import aiohttp
import pytest
from tests.integration.shadow.conftest import CHAT, Start, World, now

from gatemesh_common.broker import DEAD_LETTERS, SAMPLES
from gatemesh_common.consuming import STOP_GRACE_S
from gatemesh_common.messages import SHADOW, CheckLevel, Decoding, InstanceState, Outcome, Reason

pytestmark = pytest.mark.integration

QUESTIONS = ("Tell me about bread.", "Why do leaves fall?", "介绍一下面包。")


async def test_garbage_fails_and_names_the_instance(world: World, start_shadow: Start) -> None:
    """Each bad answer is a failed verdict; the accused one is never asked."""
    shadow = start_shadow()
    await world.route("engine-0", "engine-1")
    await shadow.ready()
    for question in QUESTIONS:
        await world.send(await world.ask("engine-1", question, fault="shift"))
        verdict = await world.verdict()
        assert (verdict.instance_id, verdict.incarnation) == ("engine-1", 1)
        assert (verdict.check_level, verdict.outcome) == (CheckLevel.L4, Outcome.FAILED)
        assert verdict.reason is Reason.REPLICA_DISAGREES
        assert (verdict.type, verdict.details["judge"]) == ("shadow", "engine-0")
        assert verdict.prompt_fingerprint == f"fp-{question}"
        assert verdict.score is not None
        assert verdict.threshold is not None
        assert verdict.score > verdict.threshold
    assert world.engines.asked["engine-1"] == [CHAT] * len(QUESTIONS)
    assert shadow.stop() == 0


async def test_clean_answers_pass(world: World, start_shadow: Start) -> None:
    """Greedy and drawn, English and Chinese; with a difference of nothing."""
    shadow = start_shadow()
    await world.route("engine-0", "engine-1", "engine-2")
    await shadow.ready()
    for question in QUESTIONS:
        for temperature in (0, 0.8):
            await world.send(await world.ask("engine-1", question, temperature=temperature))
            verdict = await world.verdict()
            assert verdict.outcome is Outcome.PASSED
            assert verdict.details["distance"] == 0.0
            assert verdict.decoding is (Decoding.SAMPLED if temperature else Decoding.GREEDY)


async def test_the_only_instance_is_skipped(world: World, start_shadow: Start) -> None:
    """Nobody can judge it: counted, not published, and the next sample is judged."""
    shadow = start_shadow()
    doubted = {"engine-0": InstanceState.SUSPECT}
    await world.route("engine-0", "engine-1", states=doubted)
    await shadow.ready()
    await world.send(await world.ask("engine-1", QUESTIONS[0], fault="shift"))
    wanted = 'gatemesh_shadow_skipped_total{check_level="L4",reason="no_replica"} 1.0'
    await shadow.until_page("/metrics", lambda _, text: wanted in text)
    assert world.engines.asked["engine-0"] == []
    await world.route("engine-0", "engine-1")
    await world.send(await world.ask("engine-1", QUESTIONS[0], fault="shift"))
    assert (await world.verdict()).outcome is Outcome.FAILED


async def test_old_samples_are_dropped(world: World, start_shadow: Start) -> None:
    """A verdict on a life that is long gone helps nobody."""
    shadow = start_shadow(max_age_s="30")
    await world.route("engine-0", "engine-1")
    await shadow.ready()
    sample = await world.ask("engine-1", QUESTIONS[0])
    await world.send(sample, age_s=60)
    wanted = 'gatemesh_shadow_dropped_total{why="too_old"} 1.0'
    await shadow.until_page("/metrics", lambda _, text: wanted in text)
    await world.send(sample, age_s=1)
    assert (await world.verdict()).request_id == sample.request_id


async def test_a_bad_judge_is_found_out(world: World, start_shadow: Start) -> None:
    """Two instances agree and the third does not: the third is accused, not the first."""
    shadow = start_shadow()
    await world.route("engine-0", "engine-1", "engine-2")
    await shadow.ready()
    async with aiohttp.ClientSession() as session:
        url = world.engines.urls["engine-0"] + "/sim/fault"
        async with session.post(url, json={"fault": "salad"}) as response:
            assert response.status == 200
    verdicts = []
    for question in QUESTIONS:
        await world.send(await world.ask("engine-1", question))
        verdicts.append(await world.verdict())
    while not any(one.instance_id == "engine-0" for one in verdicts):
        verdicts.append(await world.verdict())
    for verdict in verdicts:
        is_judge = verdict.instance_id == "engine-0"
        assert verdict.outcome is (Outcome.FAILED if is_judge else Outcome.PASSED)


async def test_second_answers(world: World, start_shadow: Start) -> None:
    """Without the score: a wrong fact fails, the same answer passes."""
    shadow = start_shadow(score="false", second_answer_share="1")
    await world.route("engine-0", "engine-1")
    await shadow.ready()
    sample = await world.ask("engine-1", "What is the capital of France?")
    await world.send(sample)
    assert (await world.verdict()).outcome is Outcome.PASSED
    wrong = sample.model_copy(
        update={"text": "Berlin.", "token_ids": None, "logprobs": None, "message_id": "wrong"}
    )
    await world.send(wrong)
    verdict = await world.verdict()
    assert (verdict.outcome, verdict.reason) == (Outcome.FAILED, Reason.FACTS_DIFFER)
    assert "Berlin" not in verdict.model_dump_json()


async def test_a_dead_judge_is_replaced(world: World, start_shadow: Start) -> None:
    """A passing fault is tried again elsewhere while the sample waits."""
    shadow = start_shadow()
    world.engines.urls["engine-2"] = "http://127.0.0.1:9"
    await world.route("engine-0", "engine-1", "engine-2")
    await shadow.ready()
    for question in QUESTIONS:
        await world.send(await world.ask("engine-1", question))
        verdict = await world.verdict()
        assert (verdict.outcome, verdict.details["judge"]) == (Outcome.PASSED, "engine-0")


async def test_poison_goes_to_the_dead_letters(world: World, start_shadow: Start) -> None:
    """With its reason; the queue goes on."""
    shadow = start_shadow()
    await world.route("engine-0", "engine-1")
    await shadow.ready()
    channel = await world.publisher.channel()
    exchange = await channel.get_exchange(SHADOW, ensure=False)
    body = json.dumps({"timestamp": now().isoformat(), "text": "no instance"}).encode()
    await exchange.publish(aio_pika.Message(body), "sample.v1.default")
    await world.send(await world.ask("engine-1", QUESTIONS[0]))
    assert (await world.verdict()).outcome is Outcome.PASSED
    dead = await channel.get_queue(DEAD_LETTERS)
    message = await dead.get(timeout=20)
    assert message is not None
    assert message.headers["x-gatemesh-queue"] == SAMPLES.name
    assert "instance_id" in str(message.headers["x-gatemesh-reason"])
    assert message.body == b"", "a sample carries prompt and answer"
    await message.ack()


async def test_a_sample_without_a_judge_goes_back_at_the_end(
    world: World, start_shadow: Start
) -> None:
    """As when a whole stack is ended: the shadow does not wait for engines that are gone."""
    shadow = start_shadow()
    sample = await world.ask("engine-1", QUESTIONS[0])
    world.engines.urls["engine-0"] = "http://127.0.0.1:1"
    await world.route("engine-0", "engine-1")
    await shadow.ready()
    await world.send(sample)
    await shadow.until_page("/metrics", lambda _, text: "replica_faults_total{" in text)
    shadow.process.send_signal(signal.SIGTERM)
    assert shadow.process.wait(STOP_GRACE_S) == 0
    channel = await world.publisher.channel()
    left = await channel.declare_queue(SAMPLES.name, passive=True)
    assert left.declaration_result.message_count == 1


async def test_calibration_survives_a_restart(world: World, start_shadow: Start) -> None:
    """Healthy pairs are measured once, and verdicts say which limits were used."""
    shadow = start_shadow(calibrate="true")
    await world.route("engine-0", "engine-1")
    wanted = 'gatemesh_shadow_calibrated{pool="default"} 1.0'
    await shadow.until_page("/metrics", lambda _, text: wanted in text)
    await world.send(await world.ask("engine-1", QUESTIONS[0]))
    assert (await world.verdict()).details["limits"] == "calibrated"
    assert shadow.stop() == 0
    asked = len(world.engines.asked["engine-0"])
    again = start_shadow(calibrate="true")
    await world.route("engine-0", "engine-1")
    await again.ready()
    await world.send(await world.ask("engine-1", QUESTIONS[1]))
    assert (await world.verdict()).details["limits"] == "calibrated"
    assert len(world.engines.asked["engine-0"]) <= asked + 3
