"""What may happen to engines while answers stream from them, with rescue on."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import aiohttp
from tests.acceptance.rescuing import (
    SLOWLY,
    Rescuing,
    Told,
    rescuing,
    tell,
    tell_whole,
    uncut,
)
from tests.faults.acting import VICTIM, ask_for, engine_of, is_repaired
from tests.faults.checks import told
from tests.faults.executor_events import spoil_everybody
from tests.faults.scenario import Event, Play

CROWD = 100
SLOW_TOKENS = 8
"""At two a second: four seconds of streaming."""
FEW, FEW_TOKENS = 24, 60
FEW_SLOW_TOKENS = 24
"""Twelve seconds: on a busy machine some streams begin many seconds after the others."""
ONSET = 6
BUDGET = 3
STORM = 45
QUICK = {
    "GATEMESH_AGENT_RESCUE_STALL_S": "2",
    "GATEMESH_AGENT_STALL_S": "2",
    "GATEMESH_AGENT_STALL_FIRST_S": "4",
    "GATEMESH_AGENT_STALL_PROBE_S": "1",
}


def prompts(it: Play, count: int) -> list[str]:
    """Return questions that nobody has asked before."""
    return [f"Tell me about {it.ledger.word} {number}, length 100." for number in range(count)]


async def are_uncut(
    it: Play, asked: Sequence[str], answers: Sequence[Told], tokens: int = FEW_TOKENS
) -> None:
    """Every stream is whole, under one id, and says what a healthy engine says."""
    expected = await uncut(it.site.plan, asked, max_tokens=tokens)
    assert [one.code for one in answers if one.code] == []
    assert [one.text for one in answers] == expected
    assert all(one.is_whole for one in answers)


async def streaming(
    it: Play, agent: Rescuing, count: int, blow: Event, tokens: int = FEW_SLOW_TOKENS
) -> tuple[list[str], list[Told]]:
    """Have so many slow streams under way, strike, and read them to their ends."""
    asked, begun = prompts(it, count), asyncio.Event()
    reading = asyncio.create_task(
        tell(agent.url, asked, begun=begun, headers=SLOWLY, max_tokens=tokens)
    )
    await begun.wait()
    await blow(it)
    return asked, await reading


async def kill_under_streams(it: Play) -> None:
    """An engine dies under a hundred streams."""
    async with rescuing(it.site.plan) as agent:
        asked, answers = await streaming(it, agent, CROWD, killed, SLOW_TOKENS)
        assert agent.continued >= CROWD / 10
    await it.site.fleet.settled()
    await are_uncut(it, asked, answers, SLOW_TOKENS)


async def killed(it: Play) -> None:
    """Kill the victim with all its processes."""
    os.killpg(it.site.fleet.pid_of(VICTIM), signal.SIGKILL)


async def hang_under_streams(it: Play) -> None:
    """An engine stops in the middle of its streams, and stays silent."""
    try:
        async with rescuing(it.site.plan, **QUICK) as agent:
            asked, answers = await streaming(it, agent, FEW, stopped)
            assert agent.continued >= 1
    finally:
        await killed(it)
    await it.site.fleet.settled()
    await are_uncut(it, asked, answers, FEW_SLOW_TOKENS)


async def stopped(it: Play) -> None:
    """Stop the victim: it neither answers nor closes."""
    os.killpg(it.site.fleet.pid_of(VICTIM), signal.SIGSTOP)


async def eject_under_streams(it: Play) -> None:
    """A person ejects an instance in the middle of its streams."""

    async def ejected(it: Play) -> None:
        await ask_for(it, "eject", VICTIM)

    async with rescuing(it.site.plan) as agent:
        asked, answers = await streaming(it, agent, FEW, ejected)
    await it.site.fleet.settled()
    await are_uncut(it, asked, answers, FEW_SLOW_TOKENS)


@asynccontextmanager
async def unrepaired(it: Play) -> AsyncIterator[None]:
    """Have the pool paused: else the victim may be out before the streams have begun."""
    await ask_for(it, "pause")
    try:
        yield
    finally:
        await ask_for(it, "resume")


@asynccontextmanager
async def failing(it: Play, fault: str) -> AsyncIterator[None]:
    """Have the victim fail so, as no drill would have it; a life that began since is spared."""
    url = f"{engine_of(it, VICTIM).base_url}/sim/fault"
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        (await session.post(url, json={"fault": fault})).release()
        try:
            yield
        finally:
            with suppress(aiohttp.ClientError):
                (await session.delete(url)).release()


async def answers_503(it: Play) -> None:
    """An engine has no room: its requests are answered by others, streamed or whole."""
    first, second = prompts(it, 2 * FEW)[:FEW], prompts(it, 2 * FEW)[FEW:]
    async with rescuing(it.site.plan) as agent, failing(it, "http503"):
        streams = await tell(agent.url, first, max_tokens=FEW_TOKENS)
        answers = await tell_whole(agent.url, second, max_tokens=FEW_TOKENS)
        assert agent.metric('gatemesh_agent_moved_total{cause="busy",outcome="moved"}') >= 1
    await are_uncut(it, [*first, *second], [*streams, *answers])


async def hang_under_whole_answers(it: Play) -> None:
    """An engine stands still under answers that are not streamed: others give them, in time."""
    asked = prompts(it, FEW)
    moved = 'gatemesh_agent_moved_total{cause="stalled",outcome="moved"}'
    async with rescuing(it.site.plan, **QUICK) as agent, failing(it, "hang"):
        # Where the mesh acts, the engine may be out before any answer has left it by itself.
        try:
            async with unrepaired(it), asyncio.timeout(60):
                answers = await tell_whole(agent.url, asked, max_tokens=FEW_TOKENS)
        except TimeoutError:
            raise AssertionError(f"{agent.told()}\n{told(it)}") from None
        assert agent.metric(moved) >= 1, agent.told()
        await is_repaired(it)
    await are_uncut(it, asked, answers)


def garble(fault: str) -> Event:
    """Return the event that an engine turns bad in the middle of its answers."""

    async def event(it: Play) -> None:
        asked = prompts(it, FEW)
        expected = await uncut(it.site.plan, asked, max_tokens=FEW_TOKENS)
        async with rescuing(it.site.plan) as agent:
            async with unrepaired(it):
                it.site.spoil(VICTIM, fault, after_tokens=ONSET)
                answers = await tell(agent.url, asked, max_tokens=FEW_TOKENS)
            assert agent.continued >= 1
            await is_repaired(it)
        assert [one.text for one in answers] == expected
        assert all(one.is_whole for one in answers)

    return event


async def bad_everywhere(it: Play) -> None:
    """A request makes every engine compute no numbers: its client is told so, and no engine is."""
    asked = prompts(it, 4)
    expected = await uncut(it.site.plan, asked, max_tokens=FEW_TOKENS)
    headers = {"X-Sim-Fault": f"nan;after_tokens={ONSET}"}
    async with rescuing(it.site.plan) as agent:
        answers = await tell(agent.url, asked, headers=headers, max_tokens=FEW_TOKENS)
    are_refused(answers, expected)


async def all_bad_under_streams(it: Play) -> None:
    """Every engine turns bad at once: clients are told so, the brakes hold, all are mended."""
    asked = prompts(it, FEW)
    expected = await uncut(it.site.plan, asked, max_tokens=FEW_TOKENS)
    async with rescuing(it.site.plan) as agent:
        for engine in it.site.plan.engines:
            it.site.spoil(engine.instance_id, "nan", after_tokens=ONSET)
        answers = await tell(agent.url, asked, max_tokens=FEW_TOKENS)
    are_refused(answers, expected)
    await spoil_everybody(it)


async def storm(it: Play) -> None:
    """Many streams turn bad at once: no more than the budget are continued."""
    asked = prompts(it, STORM)
    expected = await uncut(it.site.plan, asked, max_tokens=FEW_TOKENS)
    async with rescuing(it.site.plan, GATEMESH_AGENT_RESCUE_PER_MINUTE=str(BUDGET)) as agent:
        async with unrepaired(it):
            it.site.spoil(VICTIM, "nan", after_tokens=ONSET)
            answers = await tell(agent.url, asked, max_tokens=FEW_TOKENS)
        continued = agent.continued
        await is_repaired(it)
    refused = [one for one in answers if one.code]
    whole = [pair for pair in zip(answers, expected, strict=True) if not pair[0].code]
    assert {one.code for one in refused} == {"rescue_budget"}
    assert 0 < continued <= BUDGET
    assert all(one.text == text and one.is_whole for one, text in whole)


def are_refused(answers: Sequence[Told], expected: Sequence[str]) -> None:
    """Every stream ends with a clear error behind the good part of its answer."""
    assert all((one.code or "").startswith("rescue_") for one in answers)
    assert all(one.ended for one in answers)
    assert all(text.startswith(one.text) for one, text in zip(answers, expected, strict=True))
