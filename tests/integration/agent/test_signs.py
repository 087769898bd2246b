"""Cheap signs of a sick engine, over real HTTP."""

import json
from pathlib import Path

import pytest
from aiohttp import web
from tests.integration.agent.parts import Handler, chat, engine, saying, serving, settings_for

from gatemesh_common.messages import Attribution, Reason

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
NULL = b'{"error":{"message":"x","type":"BadRequestError","param":null,"code":400}}'
FINE = json.dumps(
    {"choices": [{"index": 0, "message": {"content": "Fine."}, "finish_reason": "stop"}]}
).encode()


def refusing_if(word: bytes, otherwise: bytes) -> Handler:
    """Return an engine that refuses prompts with a word."""

    async def answer(request: web.Request) -> web.StreamResponse:
        bad = word in await request.read()
        body = NULL if bad else otherwise
        return web.Response(
            body=body, status=400 if bad else 200, headers={"Content-Type": "application/json"}
        )

    return answer


async def test_refusals_that_others_do_not_share_are_evidence(tmp_path: Path) -> None:
    """A raw error inside the engine comes out as the client's fault."""
    async with engine(saying(NULL, status=400)) as sick, engine(saying(FINE)) as well:
        settings = settings_for(tmp_path, {"sick": sick, "well": well})
        async with serving(settings) as setup:
            for number in range(40):
                await setup.post(CHAT, chat(f"prompt {number}"))
            found = await setup.verdicts()
    assert found
    assert {(each.instance_id, each.reason, each.attribution) for each in found} == {
        ("sick", Reason.BURST_OF_REFUSALS, Attribution.INSTANCE)
    }


async def test_what_everybody_refuses_is_the_clients_fault(tmp_path: Path) -> None:
    """However much of it there is."""
    handler = refusing_if(b"bad", FINE)
    async with (
        engine(handler) as one,
        engine(handler) as two,
        serving(settings_for(tmp_path, {"one": one, "two": two})) as setup,
    ):
        for number in range(40):
            assert (await setup.post(CHAT, chat(f"bad {number}"))).status == 400
        found = await setup.verdicts()
    assert found == []
