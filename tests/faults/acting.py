"""What several events do: accuse an instance, ask as an operator, run a program of their own."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp
from tests.faults.checks import told
from tests.faults.scenario import Play

from gatemesh_common.clock import utc_now
from gatemesh_common.messages import ActionRequest, CheckLevel, Verdict
from gatemesh_mesh.plan import Engine, service_environment
from gatemesh_mesh.stack import answers_ok

VICTIM = "engine-2"
FAILURES = 6
DEATH_S = 60.0
SLOW_STREAMS = 9


def failure(number: int, word: str, instance: str = VICTIM) -> Verdict:
    """Return what a person would publish by hand about a bad answer."""
    return Verdict(
        instance_id=instance,
        request_id=f"{word}-alert-{number}",
        timestamp=utc_now(),
        check_level=CheckLevel.L1,
        type="by hand",
    )


async def accuse(it: Play) -> None:
    """Publish enough failures for condition A."""
    failures = [failure(number, it.ledger.word) for number in range(FAILURES)]
    await it.site.fleet.publish(*failures)


async def is_repaired(it: Play) -> None:
    """Wait until the victim was restarted and everything is at rest."""
    try:
        await it.site.fleet.repaired(VICTIM, it.since)
    except AssertionError as error:
        kept = "\n".join(map(str, it.site.fleet.unsettled()))
        raise AssertionError(f"{error}; not at rest for:\n{kept}\n{told(it)}") from None


async def ask_for(it: Play, action: str, instance: str | None = None, **more: str) -> None:
    """Ask as an operator, and wait until the manager has followed."""
    request = ActionRequest.model_validate(
        {
            "timestamp": utc_now(),
            "requested_by": "operator",
            "action": action,
            "instance_id": instance,
            **more,
        }
    )
    await it.site.fleet.publish(request)
    query = "SELECT count(*) FROM requests_v1 WHERE message_id = %(id)s AND outcome = 'accepted'"
    await it.reach(lambda: it.count(query, id=request.message_id) == 1, f"{action} followed")


@contextmanager
def running(
    it: Play, service: str, *program: str, **settings: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a service, or a program in its place, beside the stack; it is killed at the end."""
    environment = {**os.environ, **service_environment(it.site.plan)[service], **settings}
    arguments = program or ("-m", f"gatemesh_{service}")
    log = it.site.plan.folder.logs / f"{service}-beside.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments], env=environment, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


@asynccontextmanager
async def absent(it: Play, service: str) -> AsyncIterator[None]:
    """Keep a service of the stack stopped for a while."""
    supervision = it.site.fleet.stack.supervision
    await asyncio.to_thread(supervision.stop_program, service)
    try:
        yield
    finally:
        await asyncio.to_thread(supervision.start_program, service)


@asynccontextmanager
async def slow_streams(it: Play) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
    """Keep every engine busy with slow streams; yields what waits for them to end whole."""
    url, headers = f"{it.site.plan.agent_url}/v1/chat/completions", {"X-Sim-Fault": "slow"}
    async with aiohttp.ClientSession(headers=headers) as session:
        asked = [
            session.post(url, json=chat(f"{it.ledger.word}: slowly {number}", stream=True))
            for number in range(SLOW_STREAMS)
        ]
        streams = await asyncio.gather(*asked)

        async def are_whole() -> bool:
            got = await asyncio.gather(*(stream.read() for stream in streams))
            return all(b"[DONE]" in one for one in got)

        yield are_whole


def chat(prompt: str, **fields: Any) -> dict[str, Any]:
    """Return a chat request."""
    message = {"role": "user", "content": prompt}
    return {"model": "sim", "messages": [message], "temperature": 0, "max_tokens": 24, **fields}


async def with_whole_budget(it: Play) -> None:
    """Make the victim's restart budget whole: a person's release does."""
    await ask_for(it, "quarantine", VICTIM)
    await ask_for(it, "release", VICTIM)
    await it.site.fleet.settled()


async def use_instances(it: Play, instances: str) -> None:
    """Give the executor another list, and wait until it works by it."""
    supervision = it.site.fleet.stack.supervision
    await asyncio.to_thread(supervision.stop_program, "executor")
    it.site.plan.instances_file.write_text(instances)
    await asyncio.to_thread(supervision.start_program, "executor")
    url = it.site.plan.readiness_url("executor")
    await it.reach(lambda: answers_ok(url), "the executor works")


def engine_of(it: Play, instance: str) -> Engine:
    """Return an engine of the stack."""
    return next(one for one in it.site.plan.engines if one.instance_id == instance)


async def has_killed_itself(process: "subprocess.Popen[bytes]") -> None:
    """Wait until a program has died by its own hand."""
    assert await asyncio.to_thread(process.wait, DEATH_S) == -signal.SIGKILL


def kill(it: Play, program: str, number: int = signal.SIGKILL) -> None:
    """Send a signal to a program of the stack that runs."""
    pid = it.site.fleet.pid_of(program)
    assert pid, f"{program} does not run"
    os.kill(pid, number)
