"""`/v1/responses` and `/v1/messages` of a real engine through the agent: the same bytes, judged."""

import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.alike import alike_later
from tests.integration.agent.parts import serving, settings_for

from gatemesh_common.messages import CheckLevel, TelemetryWindow

pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(900)]

CHANGING = re.compile(rb'"(id|item_id|created|created_at)":("[^"]*"|\d+)|"cached_tokens":\d+')
MODEL = "smollm2-135m"
ASKED: dict[str, Any] = {
    "model": MODEL,
    "input": "Say hello in French and name a fruit, 你好.",
    "temperature": 0,
    "max_output_tokens": 12,
}
MESSAGE: dict[str, Any] = {
    "model": MODEL,
    "system": "Be kind.",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Say hello."}]}],
    "max_tokens": 12,
    "temperature": 0,
}
LOGPROBS = ["message.output_text.logprobs"]
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "response": ("/v1/responses", ASKED),
    "response-own": ("/v1/responses", ASKED | {"include": LOGPROBS, "top_logprobs": 2}),
    "response-top-only": ("/v1/responses", ASKED | {"top_logprobs": 5}),
    "response-refused": ("/v1/responses", ASKED | {"max_output_tokens": 10**7}),
    "response-names": (
        "/v1/responses",
        ASKED
        | {
            "metadata": {"logprobs": "x"},
            "text": {"format": {"type": "text"}},
        },
    ),
    "message": ("/v1/messages", MESSAGE),
    "message-stop": ("/v1/messages", MESSAGE | {"stop_sequences": ["o"]}),
    "message-refused": ("/v1/messages", MESSAGE | {"max_tokens": 10**7}),
    "invocation": (
        "/invocations",
        {"model": MODEL, "prompt": "The sea", "max_tokens": 6, "temperature": 0},
    ),
}


async def ask(url: str, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
    """Return status and body, without what differs between two equal requests."""
    async with aiohttp.ClientSession() as session, session.post(url + path, json=body) as response:
        return response.status, CHANGING.sub(b"", await response.read())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", CASES)
async def test_same_bytes_as_direct(
    tmp_path: Path,
    engine: Any,
    case: str,
    stream: bool,  # noqa: FBT001
) -> None:
    """With the log probabilities that the agent adds, and takes out again."""
    path, body = CASES[case]
    address = f"http://127.0.0.1:{engine.options.port}"
    asked = body | {"stream": stream}
    async with serving(settings_for(tmp_path, {"engine-0": address})) as setup:

        async def both() -> tuple[tuple[int, bytes], tuple[int, bytes]]:
            return await ask(address, path, asked), await ask(setup.url, path, asked)

        direct, through = await alike_later(both)
        assert through == direct
        setup.agent.roll_telemetry()
        windows = setup.spooled(TelemetryWindow)
    if direct[0] == 200:
        judged = {level for w in windows for level, gate in w.gates.items() if gate.passed}
        assert CheckLevel.L1 in judged
        assert (CheckLevel.L3 in judged) is not path.startswith("/v1/messages")
