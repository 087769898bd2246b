"""Faults of an engine become verdicts, once each, and reach clients as little as can be."""

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.integration.agent.parts import (
    Setup,
    chat,
    completion,
    engine,
    saying,
    serving,
    settings_for,
    until,
)

from gatemesh_common.messages import Attribution, CheckLevel, Reason, TelemetryWindow, Verdict

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"


async def set_fault(address: str, fault: str, **more: Any) -> None:
    """Have a simulated engine go bad."""
    async with aiohttp.ClientSession() as session:
        await session.post(f"{address}/sim/fault", json={"fault": fault, **more})


def levels(setup: Setup) -> list[tuple[CheckLevel, Reason, bool]]:
    """Return what was concluded against engines."""
    return [(each.check_level, each.reason, each.hard) for each in setup.spooled(Verdict)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_clean_traffic_gives_counts_and_no_verdict(
    tmp_path: Path,
    engines: dict[str, str],
    stream: bool,  # noqa: FBT001
) -> None:
    """Passes travel as counts only."""
    async with serving(settings_for(tmp_path, engines)) as setup:
        for body in (
            chat(stream=stream, n=2, temperature=1),
            chat("用中文介绍大海", stream=stream),
        ):
            await setup.post(CHAT, body)
        await setup.post("/v1/completions", completion(stream=stream))
        setup.agent.roll_telemetry()
        assert setup.spooled(Verdict) == []
        windows = setup.spooled(TelemetryWindow)
    passed = [
        sum(w.gates[level].passed for w in windows) for level in (CheckLevel.L1, CheckLevel.L3)
    ]
    assert passed == [4, 4]
    assert sum(w.requests for w in windows) == 3
    assert sum(w.tokens for w in windows) > 20


@pytest.mark.parametrize("own", [{}, {"logprobs": True, "top_logprobs": 2}], ids=["added", "own"])
async def test_nan_never_reaches_a_client_as_400(
    tmp_path: Path, engines: dict[str, str], own: dict[str, Any]
) -> None:
    """Another instance answers, and the verdict is proof."""
    await set_fault(engines["engine-0"], "nan")
    async with serving(settings_for(tmp_path, engines)) as setup:
        got = [await setup.post(CHAT, chat(**own)) for _ in range(8)]
        found = await setup.verdicts()
    assert {each.status for each in got} == {200}
    assert {each.headers["X-Gatemesh-Instance"] for each in got} == {"engine-1"}
    assert found
    assert {(each.instance_id, each.hard, each.reason) for each in found} == {
        ("engine-0", True, Reason.NAN_LOGITS)
    }
    assert all("first_bad_token_at" in each.details for each in found)


async def test_nan_everywhere_is_answered_as_the_client_asked(
    tmp_path: Path, engines: dict[str, str]
) -> None:
    """The verdict says that the request is at fault, once: another engine did as badly."""
    for address in engines.values():
        await set_fault(address, "nan")
    async with serving(settings_for(tmp_path, engines)) as setup:
        got = await setup.post(CHAT, chat())
        found = await setup.verdicts()
    assert got.status == 200
    assert json.loads(got.body)["choices"][0]["logprobs"] is None
    assert [(each.check_level, each.attribution) for each in found] == [
        (CheckLevel.L3, Attribution.REQUEST)
    ]


async def test_nan_within_a_stream_is_reported_before_it_ends(
    tmp_path: Path, engines: dict[str, str]
) -> None:
    """The first hard-proof token is enough, and its time is kept."""
    address = engines["engine-0"]
    await set_fault(address, "nan", after_tokens=3)
    async with serving(settings_for(tmp_path, {"engine-0": address})) as setup:
        got = await setup.post(CHAT, chat(stream=True), **{"X-Request-Id": "R1"})
        found = [each for each in await setup.verdicts() if each.check_level is CheckLevel.L3]
    assert b"null" in got.body
    assert len(found) == 1
    [verdict] = found
    assert (verdict.hard, verdict.request_id, verdict.choice) == (True, "R1", 0)
    assert verdict.details["stream"] is True
    assert verdict.details["tokens"] == 4
    assert verdict.span is not None
    assert verdict.span.token_start == 3


@pytest.mark.parametrize(
    ("fault", "reason", "hard"),
    [
        ("flat", Reason.FLAT_DISTRIBUTION, True),
        ("replacement", Reason.REPLACEMENT_CHARS, False),
        ("control", Reason.CONTROL_CHARS, False),
        ("private_use", Reason.PRIVATE_USE_CHARS, False),
        ("special", Reason.SPECIAL_TOKENS, False),
        ("stuck", Reason.REPETITION, False),
        ("loop", Reason.REPETITION, False),
        ("empty", Reason.EMPTY, False),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_each_fault_is_named(  # noqa: PLR0917
    tmp_path: Path,
    engines: dict[str, str],
    fault: str,
    reason: Reason,
    hard: bool,  # noqa: FBT001
    stream: bool,  # noqa: FBT001
) -> None:
    """Streamed or not, with the evidence and without the text."""
    address = engines["engine-0"]
    await set_fault(address, fault)
    async with serving(settings_for(tmp_path, {"engine-0": address})) as setup:
        await setup.post(CHAT, chat(stream=stream, max_tokens=200), Authorization="Bearer key")
        found = await setup.verdicts()
    assert (reason, hard) in {(each.reason, each.hard) for each in found}
    assert len({each.check_level for each in found}) == len(found)
    assert all(each.tenant and each.prompt_fingerprint for each in found)
    assert "sea" not in repr(found)


async def test_every_choice_is_judged(tmp_path: Path, engines: dict[str, str]) -> None:
    """Three bad choices give three verdicts of a gate."""
    address = engines["engine-0"]
    await set_fault(address, "replacement")
    async with serving(settings_for(tmp_path, {"engine-0": address})) as setup:
        await setup.post(CHAT, chat(stream=True, n=3, temperature=1, max_tokens=100))
        found = [each for each in await setup.verdicts() if each.check_level is CheckLevel.L1]
    assert sorted(each.choice for each in found) == [0, 1, 2]


async def test_a_client_that_leaves_ends_the_request_and_keeps_what_is_proven(
    tmp_path: Path, engines: dict[str, str]
) -> None:
    """The engine sees the abort; what was not decided is skipped, never passed."""
    address = engines["engine-0"]
    await set_fault(address, "hang", after_tokens=5)
    async with serving(settings_for(tmp_path, {"engine-0": address})) as setup:
        response = await setup.session.post(setup.url + CHAT, json=chat(stream=True))
        await response.content.readany()
        assert await running(setup, address) == 1
        response.close()
        await until(lambda: setup.agent.router.in_flight["engine-0"] == 0)
        async with setup.session.get(f"{address}/metrics") as metrics:
            page = await metrics.text()
        setup.agent.roll_telemetry()
        windows = setup.spooled(TelemetryWindow)
        assert setup.spooled(Verdict) == []
    assert 'num_requests_running{engine="0",model_name="sim"} 0.0' in page
    for level in (CheckLevel.L1, CheckLevel.L3):
        assert [w.gates[level].skipped for w in windows if w.gates] == [{"cut_short": 1}]


async def running(setup: Setup, address: str) -> int:
    """Return how many requests an engine runs."""
    async with setup.session.get(f"{address}/metrics") as response:
        page = await response.text()
    [line] = [one for one in page.splitlines() if one.startswith("vllm:num_requests_running{")]
    return int(float(line.rsplit(" ", 1)[1]))


async def test_an_answer_too_large_to_hold_passes_without_the_added(tmp_path: Path) -> None:
    """Memory is bounded; the gates are skipped for it, and that is counted."""
    entry = {"token": "x" * 50, "logprob": -0.5, "bytes": None, "top_logprobs": []}
    choice = {"index": 0, "message": {"content": "x" * 3000}, "logprobs": {"content": [entry] * 99}}
    body = json.dumps({"choices": [choice], "tail": "y" * 500}, separators=(",", ":")).encode()
    async with engine(saying(body)) as address:
        settings = settings_for(tmp_path, {"engine-0": address}, max_answer_bytes=1024)
        async with serving(settings) as setup:
            got = await setup.post(CHAT, chat())
            setup.agent.roll_telemetry()
            [window] = setup.spooled(TelemetryWindow)
    choice["logprobs"] = None
    assert (
        got.body
        == json.dumps({"choices": [choice], "tail": "y" * 500}, separators=(",", ":")).encode()
    )
    assert window.gates[CheckLevel.L1].skipped == {"too_large": 1}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            b'{"choices":[{"message":{"content":"\xff\xfe"},"logprobs":null}]}', id="latin"
        ),
        pytest.param(b"this is no JSON", id="text"),
        pytest.param(b'{"choices":[{"logprobs":{"content":[]},"m":"\xff"}]}', id="latin-logprobs"),
    ],
)
async def test_what_cannot_be_read_passes_and_is_skipped(tmp_path: Path, body: bytes) -> None:
    """A gate never says passed for what it has not seen."""
    async with (
        engine(saying(body)) as address,
        serving(settings_for(tmp_path, {"engine-0": address})) as setup,
    ):
        got = await setup.post(CHAT, chat())
        setup.agent.roll_telemetry()
        [window] = setup.spooled(TelemetryWindow)
    assert got.body == body.replace(b'{"content":[]}', b"null")
    assert window.gates[CheckLevel.L1].skipped == {"unreadable": 1}
    assert window.gates[CheckLevel.L3].passed == 0


async def test_a_lone_surrogate_is_judged_and_passes(tmp_path: Path) -> None:
    """Python engines may write one."""
    body = (
        b'{"choices":[{"index":0,"message":{"content":"odd \\ud800 text"},'
        b'"logprobs":{"content":[]},"finish_reason":"stop"}]}'
    )
    async with (
        engine(saying(body)) as address,
        serving(settings_for(tmp_path, {"engine-0": address})) as setup,
    ):
        got = await setup.post(CHAT, chat())
        setup.agent.roll_telemetry()
        [window] = setup.spooled(TelemetryWindow)
    assert got.body == body.replace(b'{"content":[]}', b"null")
    assert window.gates[CheckLevel.L1].passed + window.gates[CheckLevel.L1].failed == 1


OTHER_ROUTES = {
    "/v1/responses": {"model": "sim", "input": "Tell me about the sea.", "max_output_tokens": 64},
    "/v1/messages": chat() | {"max_tokens": 64},
    "/invocations": chat() | {"max_tokens": 64},
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
async def test_other_routes_are_guarded(
    tmp_path: Path,
    engines: dict[str, str],
    path: str,
    stream: bool,  # noqa: FBT001
) -> None:
    """Clean answers pass, bad text fails L1, flat figures fail L3 where there are figures."""
    asked = OTHER_ROUTES[path] | {"stream": stream}
    async with serving(settings_for(tmp_path, {"engine-0": engines["engine-0"]})) as setup:
        await setup.post(path, asked)
        assert setup.spooled(Verdict) == []
        await set_fault(engines["engine-0"], "control")
        await setup.post(path, asked)
        await until(lambda: setup.spooled(Verdict))
        assert (CheckLevel.L1, Reason.CONTROL_CHARS) in [each[:2] for each in levels(setup)]
        await set_fault(engines["engine-0"], "flat")
        await setup.post(path, asked)
        if path == "/v1/responses":
            flat = (CheckLevel.L3, Reason.FLAT_DISTRIBUTION, True)
            await until(lambda: flat in levels(setup))
        setup.agent.roll_telemetry()
        windows = setup.spooled(TelemetryWindow)
    passed = sum(w.gates[CheckLevel.L1].passed for w in windows)
    assert passed >= 1
    assert sum(w.unguarded for w in windows) == 0


async def test_a_path_that_takes_any_body_is_guarded_by_its_shape(tmp_path: Path) -> None:
    """What fits no shape passes and is counted."""
    answer = {"choices": [{"index": 0, "message": {"content": "a\x00b\x00"}}]}
    answer["choices"][0]["finish_reason"] = "stop"
    async with (
        engine(saying(json.dumps(answer).encode())) as address,
        serving(settings_for(tmp_path, {"engine-0": address})) as setup,
    ):
        await setup.post("/invocations", OTHER_ROUTES["/invocations"])
        await until(lambda: setup.spooled(Verdict))
        assert levels(setup)[0][:2] == (CheckLevel.L1, Reason.CONTROL_CHARS)
        for path, body in (
            ("/invocations", {"inputs": "x"}),
            ("/v1/responses", {"input": "x", "background": True}),
            ("/v1/chat/completions/batch", {"messages": [[]]}),
            ("/inference/v1/generate", {"token_ids": [1]}),
            ("/generative_scoring", {}),
        ):
            await setup.post(path, body)
        setup.agent.roll_telemetry()
        assert sum(w.unguarded for w in setup.spooled(TelemetryWindow)) == 5
