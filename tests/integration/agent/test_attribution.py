"""Second opinions: whose fault a failure is, found out off the client's path."""

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.integration.agent.parts import chat, engine, saying, serving, settings_for

from gatemesh_common.messages import Attribution, Reason, Verdict

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
POISON = {"vllm_xargs": {"sim_fault": "nan"}}
"""Has any simulated engine emit NaN for this request."""


async def set_fault(address: str, fault: str, **more: Any) -> None:
    """Have a simulated engine go bad."""
    async with aiohttp.ClientSession() as session:
        await session.post(f"{address}/sim/fault", json={"fault": fault, **more})


def rulings(found: list[Verdict]) -> Counter[Attribution]:
    """Count verdicts by whose fault they say it is."""
    return Counter(each.attribution for each in found)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_poisonous_prompt_is_the_requests_fault(
    tmp_path: Path,
    engines: dict[str, str],
    stream: bool,  # noqa: FBT001
) -> None:
    """However often it comes, nobody is blamed, and finding out costs one try."""
    served = Tries(engines)
    async with served, serving(settings_for(tmp_path, served.addresses)) as setup:
        for _ in range(20):
            got = await setup.post(CHAT, chat("poison", stream=stream, **POISON))
            assert got.status == 200
        found = await setup.verdicts()
    assert set(rulings(found)) == {Attribution.REQUEST}
    assert sum(each.hard for each in found) == 20
    assert served.short <= 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_broken_instance_is_blamed(
    tmp_path: Path,
    engines: dict[str, str],
    stream: bool,  # noqa: FBT001
) -> None:
    """The other instance answers the same request well; `benchmarks/` measures how soon."""
    await set_fault(engines["engine-0"], "nan")
    async with serving(settings_for(tmp_path, engines, attribution_wait_s=30.0)) as setup:
        for number in range(6):
            await setup.post(CHAT, chat(f"Tell me about {number}.", stream=stream))
        found = await setup.verdicts()
    hard = [each for each in found if each.hard]
    assert hard
    assert rulings(hard) == {Attribution.INSTANCE: len(hard)}
    assert {each.instance_id for each in found} == {"engine-0"}
    assert {each.details["attributed_by"] for each in hard} <= {"heard", "known"}


async def test_soft_evidence_is_attributed_too(tmp_path: Path, engines: dict[str, str]) -> None:
    """By the gates that the first answer failed."""
    await set_fault(engines["engine-0"], "control")
    async with serving(settings_for(tmp_path, engines)) as setup:
        for number in range(6):
            await setup.post(CHAT, chat(f"Tell me about {number}.", stream=True))
        found = await setup.verdicts()
    assert Reason.CONTROL_CHARS in {each.reason for each in found}
    assert set(rulings(found)) == {Attribution.INSTANCE}


async def test_nobody_else_to_ask_is_said_at_once(tmp_path: Path, engines: dict[str, str]) -> None:
    """A pool of one waits for nothing."""
    await set_fault(engines["engine-0"], "nan")
    only = {"engine-0": engines["engine-0"]}
    async with serving(settings_for(tmp_path, only)) as setup:
        await setup.post(CHAT, chat(stream=True))
        hard = [each for each in setup.spooled(Verdict) if each.hard]
    assert [each.attribution for each in hard] == [Attribution.UNKNOWN]
    assert hard[0].details["attributed_by"] == "nobody_else"


async def test_a_slow_second_opinion_delays_proof_no_further(
    tmp_path: Path, engines: dict[str, str]
) -> None:
    """The verdict goes out as unknown when the other does not answer in time."""
    silent = asyncio.Event()

    async def hanging(request: web.Request) -> web.StreamResponse:
        await request.read()
        await silent.wait()
        return web.Response()

    await set_fault(engines["engine-0"], "nan")
    async with engine(hanging) as slow:
        pool = {"engine-0": engines["engine-0"], "engine-1": slow}
        settings = settings_for(tmp_path, pool, attribution_wait_s=0.3)
        async with serving(settings) as setup:
            setup.agent.router.enter("engine-1")
            begun_s = time.monotonic()
            await setup.post(CHAT, chat(stream=True))
            found = [each for each in await setup.verdicts() if each.hard]
            took_s = time.monotonic() - begun_s
        silent.set()
    assert [each.attribution for each in found] == [Attribution.UNKNOWN]
    assert found[0].details["attributed_by"] == "late"
    assert took_s >= 0.3


async def test_what_is_withheld_goes_out_when_the_agent_ends(
    tmp_path: Path, engines: dict[str, str]
) -> None:
    """As it is: nothing is lost."""
    await set_fault(engines["engine-0"], "nan")
    asked = asyncio.Event()

    async def hanging(request: web.Request) -> web.StreamResponse:
        await request.read()
        asked.set()
        await asyncio.Event().wait()
        return web.Response()

    async with engine(hanging) as slow:
        pool = {"engine-0": engines["engine-0"], "engine-1": slow}
        async with serving(settings_for(tmp_path, pool)) as setup:
            setup.agent.router.enter("engine-1")
            await setup.post(CHAT, chat(stream=True))
            await asked.wait()
            await setup.agent.guarding.stop()
            found = [each for each in setup.spooled(Verdict) if each.hard]
    assert [each.details["attributed_by"] for each in found] == ["stopped"]


async def test_shield_gives_the_clean_answer(tmp_path: Path, engines: dict[str, str]) -> None:
    """The client sees what the clean engine wrote, and the verdict blames the other."""
    await set_fault(engines["engine-0"], "control")
    async with serving(settings_for(tmp_path, engines, guard="shield")) as setup:
        got = [await setup.post(CHAT, chat(f"Tell me about {n}.")) for n in range(8)]
        found = await setup.verdicts()
    assert {each.status for each in got} == {200}
    assert {each.headers["X-Gatemesh-Instance"] for each in got} == {"engine-1"}
    assert found
    assert set(rulings(found)) == {Attribution.INSTANCE}
    async with serving(settings_for(tmp_path, {"e": engines["engine-1"]})) as setup:
        direct = await setup.post(CHAT, chat("Tell me about 0."))
    assert text_of(direct.body) == text_of(got[0].body)


async def test_shield_passes_what_all_object_to_softly(
    tmp_path: Path, engines: dict[str, str]
) -> None:
    """The request is at fault then; a header says so."""
    for address in engines.values():
        await set_fault(address, "control")
    async with serving(settings_for(tmp_path, engines, guard="shield")) as setup:
        got = await setup.post(CHAT, chat())
        found = await setup.verdicts()
    assert (got.status, got.headers["X-Gatemesh-Unfit"]) == (200, "control_chars")
    assert rulings(found) == {Attribution.REQUEST: 1}


async def test_shield_refuses_what_is_proven_bad_everywhere(
    tmp_path: Path, engines: dict[str, str]
) -> None:
    """With an error that names the reason."""
    for address in engines.values():
        await set_fault(address, "nan")
    async with serving(settings_for(tmp_path, engines, guard="shield")) as setup:
        got = await setup.post(CHAT, chat())
    error = json.loads(got.body)["error"]
    assert (got.status, error["type"]) == (502, "AnswersUnfit")
    assert "nan_logits" in error["message"]


async def test_shield_may_mind_proof_only(tmp_path: Path, engines: dict[str, str]) -> None:
    """Soft evidence passes then."""
    only = {"engine-0": engines["engine-0"]}
    await set_fault(engines["engine-0"], "control")
    settings = settings_for(tmp_path, only, guard="shield", shield_on="hard")
    async with serving(settings) as setup:
        got = await setup.post(CHAT, chat())
    assert got.status == 200
    assert "X-Gatemesh-Unfit" not in got.headers


async def test_an_engine_that_knows_no_token_ids_is_asked_without(tmp_path: Path) -> None:
    """The client sees nothing of it."""
    bodies: list[dict[str, Any]] = []
    refusal = b'{"error":{"message":"Unrecognized argument: return_tokens_as_token_ids"}}'

    async def strict(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if request.path == CHAT:
            bodies.append(body)
        if "return_tokens_as_token_ids" in body:
            return await saying(refusal, status=400)(request)
        return web.json_response({"choices": []})

    async with engine(strict) as address, serving(settings_for(tmp_path, {"e": address})) as setup:
        statuses = [(await setup.post(CHAT, chat())).status for _ in range(2)]
    assert statuses == [200, 200]
    assert ["return_tokens_as_token_ids" in each for each in bodies] == [True, False, False]
    assert bodies[-1]["top_logprobs"] == 20


def text_of(body: bytes) -> str:
    """Return the text of a chat answer."""
    return str(json.loads(body)["choices"][0]["message"]["content"])


class Tries:
    """Stands before engines and counts the second tries among the requests."""

    def __init__(self, engines: dict[str, str]) -> None:
        self._engines = engines
        self._setups: list[Any] = []
        self.addresses: dict[str, str] = {}
        self.short = 0
        """Requests that were cut short: second tries."""

    async def __aenter__(self) -> "Tries":
        self._session = aiohttp.ClientSession()
        for name, address in self._engines.items():
            server = engine(self._to(address))
            self._setups.append(server)
            self.addresses[name] = await server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._setups:
            await server.__aexit__(None, None, None)
        await self._session.close()

    def _to(self, address: str) -> Any:
        async def forward(request: web.Request) -> web.StreamResponse:
            body = await request.json()
            self.short += request.path == CHAT and body["max_tokens"] != 24
            async with self._session.post(address + request.path, json=body) as got:
                kind = got.headers["Content-Type"]
                return web.Response(
                    body=await got.read(), status=got.status, headers={"Content-Type": kind}
                )

        return forward
