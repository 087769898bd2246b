"""Probe tickets: a healthy engine passes the suite, a damaged one never does."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.integration.agent.parts import Setup, engine, serving, settings_for, until

from gatemesh_agent.routing import PoolView
from gatemesh_agent.suite import load_suite
from gatemesh_common.messages import (
    CheckLevel,
    InstanceState,
    Outcome,
    ProbeTicket,
    Reason,
    RoutedInstance,
    Verdict,
)
from gatemesh_engine_sim.known import known_answer

pytestmark = pytest.mark.integration

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def view(address: str, ticket: str = "T1", version: int = 1) -> PoolView:
    """Return a view with one instance on probation."""
    instance = RoutedInstance(
        instance_id="engine-0",
        base_url=address,
        state=InstanceState.PROBATION,
        incarnation=4,
        model_version="m",
        probe=ProbeTicket(ticket_id=ticket, purpose="probation"),
    )
    return PoolView(version, NOON, (instance,))


async def probed(setup: Setup, address: str) -> Verdict:
    """Return the verdict on one ticket."""
    setup.agent.prober.follow(view(address))
    await until(lambda: setup.spooled(Verdict))
    [verdict] = setup.spooled(Verdict)
    return verdict


async def set_fault(address: str, fault: str) -> None:
    """Have a simulated engine go bad."""
    async with aiohttp.ClientSession() as session:
        await session.post(f"{address}/sim/fault", json={"fault": fault})


async def test_a_healthy_engine_passes(tmp_path: Path, engines: dict[str, str]) -> None:
    """Every prompt answered rightly, and the verdict answers the ticket."""
    async with serving(settings_for(tmp_path, engines)) as setup:
        verdict = await probed(setup, engines["engine-0"])
    assert verdict.details["failed"] == []
    assert verdict.details["passed"] == verdict.details["total"] >= 10
    assert (verdict.check_level, verdict.outcome) == (CheckLevel.L5, Outcome.PASSED)
    assert (verdict.instance_id, verdict.incarnation) == ("engine-0", 4)
    assert verdict.request_id == verdict.details["ticket_id"] == "T1"
    assert verdict.details["purpose"] == "probation"
    assert verdict.score == 1.0


@pytest.mark.parametrize(
    "fault",
    [
        "nan",
        "flat",
        "shift",
        "stuck",
        "empty",
        "replacement",
        "salad",
        "bang",
        "http500",
        "disconnect",
    ],
)
async def test_a_damaged_engine_fails(tmp_path: Path, engines: dict[str, str], fault: str) -> None:
    """However it is damaged."""
    address = engines["engine-0"]
    await set_fault(address, fault)
    async with serving(settings_for(tmp_path, engines)) as setup:
        verdict = await probed(setup, address)
    assert (verdict.outcome, verdict.reason) == (Outcome.FAILED, Reason.PROBES_FAILED)
    assert "smoke" in verdict.details["failed"]
    assert not verdict.hard


async def test_an_engine_that_never_gets_ready_fails(tmp_path: Path) -> None:
    """The ticket ends all the same."""
    settings = settings_for(tmp_path, {}, probe_health_s=0.3)
    async with serving(settings) as setup:
        verdict = await probed(setup, "http://127.0.0.1:1")
    assert verdict.outcome is Outcome.FAILED
    assert verdict.details["failed"] == ["health"]


async def test_an_engine_that_hangs_fails(tmp_path: Path, engines: dict[str, str]) -> None:
    """Healthy by its own word, but no answer."""
    address = engines["engine-0"]
    await set_fault(address, "hang")
    async with serving(settings_for(tmp_path, engines, probe_answer_s=0.3)) as setup:
        verdict = await probed(setup, address)
    assert verdict.details["faults"]["smoke"] == "no answer in time"


async def test_a_ticket_runs_once(tmp_path: Path, engines: dict[str, str]) -> None:
    """The table repeats it every two seconds; a new ticket runs again."""
    address = engines["engine-0"]
    async with serving(settings_for(tmp_path, engines)) as setup:
        for _ in range(3):
            setup.agent.prober.follow(view(address))
        await until(lambda: len(setup.spooled(Verdict)) == 1)
        setup.agent.prober.follow(view(address))
        setup.agent.prober.follow(view(address, "T2", 2))
        await until(lambda: len(setup.spooled(Verdict)) == 2)
        found = [each.request_id for each in setup.spooled(Verdict)]
    assert found == ["T1", "T2"]


async def test_a_withdrawn_ticket_is_dropped(tmp_path: Path) -> None:
    """Nobody waits for it any more; the engine's request ends."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def stall(_request: web.Request) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with (
        engine(stall) as address,
        serving(settings_for(tmp_path, {})) as setup,
    ):
        setup.agent.prober.follow(view(address))
        await asyncio.wait_for(begun.wait(), 10)
        setup.agent.prober.follow(PoolView(2, NOON, ()))
        await asyncio.wait_for(ended.wait(), 10)
        assert setup.spooled(Verdict) == []


async def test_an_engine_without_structured_output_is_not_at_fault(tmp_path: Path) -> None:
    """What it refuses is not answered; that alone is no damage."""

    async def plain(request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response({"data": [{"id": "sim"}]})
        body = await request.json()
        if "response_format" in body:
            return web.json_response({"error": {"message": "unsupported"}}, status=400)
        choice = {"index": 0, "message": {"content": "Hello, world!"}, "finish_reason": "stop"}
        return web.json_response({"choices": [choice]})

    async with (
        engine(plain) as address,
        serving(settings_for(tmp_path, {})) as setup,
    ):
        verdict = await probed(setup, address)
    assert "json" not in verdict.details["faults"]
    assert verdict.details["passed"] == 3


async def guarded_engine(request: web.Request) -> web.StreamResponse:
    """An engine that wants a key under `/v1`, as vLLM with --api-key does."""
    if request.path.startswith("/v1") and request.headers.get("Authorization") != "Bearer secret":
        return web.json_response({"error": "Unauthorized"}, status=401)
    if request.method == "GET":
        return web.json_response({"data": [{"id": "sim"}]})
    choice = {"index": 0, "message": {"content": "Hello, world!"}, "finish_reason": "stop"}
    return web.json_response({"choices": [choice]})


async def test_an_engine_that_refuses_every_probe_is_not_judged(tmp_path: Path) -> None:
    """A missing key must neither restart an engine nor let it into rotation."""
    async with engine(guarded_engine) as address, serving(settings_for(tmp_path, {})) as setup:
        verdict = await probed(setup, address)
    assert (verdict.outcome, verdict.reason) == (Outcome.SKIPPED, Reason.PROBES_REFUSED)


async def test_probes_bring_the_key_that_the_engine_asks_for(tmp_path: Path) -> None:
    """With it the same engine is judged."""
    settings = settings_for(tmp_path, {}, probe_api_key="secret")
    async with engine(guarded_engine) as address, serving(settings) as setup:
        verdict = await probed(setup, address)
    assert verdict.outcome is not Outcome.SKIPPED
    assert verdict.details["passed"] > 0


async def answer_by(request: web.Request, wrong: Callable[[dict[str, Any]], bool]) -> web.Response:
    """Answer as a healthy engine would, or wrongly where it is said so."""
    if request.method == "GET":
        return web.json_response({"data": [{"id": "sim"}]})
    body = await request.json()
    question = body["messages"][-1]["content"]
    known = '{"answer": 1}' if "response_format" in body else known_answer(question)
    text = "I do not know." if wrong(body) else known
    choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
    return web.json_response({"choices": [choice]})


async def test_a_spoilt_prefix_cache_shows(tmp_path: Path) -> None:
    """Right when asked plainly and with a salt, wrong after a cached conversation."""

    async def spoilt(request: web.Request) -> web.StreamResponse:
        return await answer_by(
            request, lambda body: len(body["messages"]) > 1 and "cache_salt" not in body
        )

    async with engine(spoilt) as address, serving(settings_for(tmp_path, {})) as setup:
        verdict = await probed(setup, address)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.details["failed"] == ["prefix-cache"]
    assert verdict.details["prefix"]["pairs"] == 3
    assert len(verdict.details["prefix"]["cached_wrong"]) == 3
    assert verdict.score == 1.0


async def test_an_engine_that_takes_no_unknown_field_is_judged(tmp_path: Path) -> None:
    """Asked again without; only the fresh askings are left out."""

    async def strict(request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.method == "POST" else {}
        if {"priority", "cache_salt"} & body.keys():
            return web.json_response({"error": {"message": "extra fields"}}, status=422)
        return await answer_by(request, lambda _: False)

    async with engine(strict) as address, serving(settings_for(tmp_path, {})) as setup:
        verdict = await probed(setup, address)
    assert verdict.outcome is Outcome.PASSED
    assert verdict.details["prefix"]["pairs"] == 0


async def test_a_full_queue_is_no_evidence(tmp_path: Path) -> None:
    """Neither for nor against the instance."""

    async def full(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            return web.json_response({"error": {"message": "busy"}}, status=503)
        return await answer_by(request, lambda _: False)

    async with engine(full) as address, serving(settings_for(tmp_path, {})) as setup:
        verdict = await probed(setup, address)
    assert (verdict.outcome, verdict.reason) == (Outcome.SKIPPED, Reason.PROBES_REFUSED)
    assert verdict.details["busy"] == len(load_suite(None).prompts) + 6
