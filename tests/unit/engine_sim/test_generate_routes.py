"""Text generation over HTTP, without a network."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gatemesh_engine_sim.faults import Delivery
from gatemesh_engine_sim.generate_routes import STRIKES, Generator
from gatemesh_engine_sim.service import Service

MakeService = Callable[..., Service]
BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Tell me about bread."}],
    "max_tokens": 12,
}
Call = Callable[..., Any]


def joined(events: list[Any]) -> str:
    """The text of a chat stream."""
    deltas = [choice["delta"] for event in events[:-1] for choice in event.get("choices", [])]
    return "".join(delta.get("content", "") for delta in deltas)


async def test_whole_and_stream_agree(make_service: MakeService, call: Call) -> None:
    """Text and finish reason."""
    chat = Generator(make_service()).chat
    whole = await call(chat, BODY)
    stream = await call(chat, BODY | {"stream": True, "stream_options": {"include_usage": True}})
    assert (whole.status, stream.status) == (200, 200)
    assert stream.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    [choice] = whole.json["choices"]
    assert joined(stream.events) == choice["message"]["content"]
    assert stream.events[-3]["choices"][0]["finish_reason"] == choice["finish_reason"] == "length"
    assert stream.events[-2]["usage"]["completion_tokens"] == 12
    assert stream.events[-1] == "[DONE]"


async def test_completions(make_service: MakeService, call: Call) -> None:
    """The older route."""
    answer = await call(Generator(make_service()).completions, {"prompt": "1+1=", "logprobs": 1})
    [choice] = answer.json["choices"]
    assert choice["text"] == "2"
    assert choice["logprobs"]["tokens"] == ["2", "<|im_end|>"]


async def test_prompt_scores(make_service: MakeService, call: Call) -> None:
    """One entry per token of the prompt; a spoilt engine has none to give, NaN is refused."""
    completions = Generator(make_service()).completions
    body = {"prompt": [1, 300, 301, 302], "max_tokens": 1, "prompt_logprobs": 0}
    [choice] = (await call(completions, body)).json["choices"]
    assert [entry and list(entry) for entry in choice["prompt_logprobs"]] == [
        *(None, ["300"], ["301"], ["302"])
    ]
    spoilt = (await call(completions, body, {"X-Sim-Fault": "salad"})).json["choices"][0]
    assert {one["300"]["logprob"] for one in spoilt["prompt_logprobs"][1:2]} == {
        -10.802672386169434
    }
    assert (await call(completions, body, {"X-Sim-Fault": "nan"})).status == 400
    assert (await call(completions, body | {"prompt_logprobs": 1, "stream": True})).status == 400
    assert (await call(completions, {"prompt": "hi"})).json["choices"][0]["prompt_logprobs"] is None


async def test_request_id_is_the_clients(make_service: MakeService, call: Call) -> None:
    """And one of our own where there is none."""
    chat = Generator(make_service()).chat
    assert (await call(chat, BODY, {"X-Request-Id": "R"})).json["id"] == "chatcmpl-R"
    assert len((await call(chat, BODY)).json["id"]) == len("chatcmpl-") + 16


async def test_nan(make_service: MakeService, call: Call) -> None:
    """Three faces: 200 and empty, 400 with logprobs, nulls in a stream."""
    chat = Generator(make_service()).chat
    header = {"X-Sim-Fault": "nan"}
    plain = await call(chat, BODY, header)
    assert (plain.status, plain.json["choices"][0]["message"]["content"]) == (200, "")
    refused = await call(chat, BODY | {"logprobs": True}, header)
    assert (refused.status, refused.json["error"]["param"]) == (400, None)
    stream = await call(chat, BODY | {"logprobs": True, "stream": True}, header)
    entries = [event["choices"][0]["logprobs"]["content"][0] for event in stream.events[1:-1]]
    assert (stream.status, len(entries)) == (200, 12)
    assert all(entry["logprob"] is None for entry in entries)


async def test_unknown_fault_is_refused(make_service: MakeService, call: Call) -> None:
    """A typing error in a test does not pass as a clean answer."""
    answer = await call(Generator(make_service()).chat, BODY, {"X-Sim-Fault": "nam"})
    assert answer.status == 400
    assert "nam" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("fault", "streamed", "status"),
    [
        ("http500", False, 500),
        ("http500", True, 500),
        ("http503", False, 503),
        ("http503", True, 200),
        ("http500;after_tokens=3", True, 200),
    ],
)
async def test_error_faults(
    make_service: MakeService, call: Call, fault: str, *, streamed: bool, status: int
) -> None:
    """With their status, or as an event once the status is out."""
    chat = Generator(make_service()).chat
    answer = await call(chat, BODY | {"stream": streamed}, {"X-Sim-Fault": fault})
    assert answer.status == status
    error = answer.events[-2] if status == 200 else answer.json
    assert error["error"]["code"] in {500, 503}


async def test_late_refusals_are_events(make_service: MakeService, call: Call) -> None:
    """Too many logprobs: 400 whole, 200 and an event streamed."""
    chat = Generator(make_service()).chat
    body = BODY | {"logprobs": True, "top_logprobs": 21}
    assert (await call(chat, body)).status == 400
    streamed = await call(chat, body | {"stream": True})
    assert (streamed.status, streamed.events[0]["error"]["code"]) == (200, 400)
    assert streamed.events[-1] == "[DONE]"


@pytest.mark.parametrize("fault", ["hang", "exit"])
@pytest.mark.parametrize("streamed", [True, False])
async def test_death_ends_stalled_answers(
    make_service: MakeService, call: Call, fault: str, *, streamed: bool
) -> None:
    """A hang lasts until the engine dies; the fault exit makes it die."""
    service = make_service()
    body = BODY | {"stream": streamed}
    header = {"X-Sim-Fault": f"{fault};after_tokens=2"}
    answering = asyncio.create_task(call(Generator(service).chat, body, header))
    for _ in range(50):
        await asyncio.sleep(0)
    service.engine.die()
    answer = await asyncio.wait_for(answering, 2)
    assert answer.status == (200 if streamed else 500)
    error = answer.events[-2] if streamed else answer.json
    assert "EngineCore" in error["error"]["message"]


async def test_cut_connection(make_service: MakeService, call: Call) -> None:
    """The handler ends with the error of a lost connection, nothing is counted."""
    service = make_service()
    with pytest.raises(ConnectionResetError):
        await call(Generator(service).chat, BODY | {"stream": True}, {"X-Sim-Fault": "disconnect"})
    assert b'generation_tokens_total{engine="0",model_name="sim"} 0.0' in service.metrics.page()


async def test_events_can_share_a_write(make_service: MakeService, call: Call) -> None:
    """The bytes are the same."""
    body = BODY | {"stream": True}
    header = {"X-Request-Id": "R"}
    single = await call(Generator(make_service()).chat, body, header)
    many = await call(Generator(make_service(events_per_write=5)).chat, body, header)
    assert single.body == many.body


async def test_finished_requests_are_counted(make_service: MakeService, call: Call) -> None:
    """Under their finish reason."""
    service = make_service()
    await call(Generator(service).chat, BODY)
    page = service.metrics.page().decode()
    assert 'request_success_total{engine="0",finished_reason="length",model_name="sim"} 1.0' in page


def test_every_delivery_has_its_strike() -> None:
    """The whole table."""
    assert set(STRIKES) == set(Delivery)


@pytest.mark.parametrize(
    ("route", "body", "end"),
    [
        ("responses", {"input": "Tell me about bread.", "max_output_tokens": 12}, b"completed"),
        ("messages", {**BODY}, b"message_stop"),
    ],
)
async def test_other_routes_give_the_answer_of_a_chat(
    make_service: MakeService, call: Call, route: str, body: dict[str, Any], end: bytes
) -> None:
    """Whole and streamed, in their own words."""
    generator = Generator(make_service())
    chat = await call(generator.chat, BODY)
    text = chat.json["choices"][0]["message"]["content"]
    whole = await call(getattr(generator, route), body)
    content = whole.json["output"][0]["content"] if route == "responses" else whole.json["content"]
    assert content[0]["text"] == text
    stream = await call(getattr(generator, route), body | {"stream": True})
    assert end in stream.body.split(b"\n\n")[-2]


async def test_errors_are_shaped_by_their_route(make_service: MakeService, call: Call) -> None:
    """And a response that is refused late breaks off once it is announced."""
    generator = Generator(make_service())
    refused = await call(generator.messages, BODY | {"model": "nope"})
    assert refused.json["type"] == "error"
    asked = {"input": "x", "include": ["message.output_text.logprobs"], "top_logprobs": 21}
    torn = await call(generator.responses, asked | {"stream": True})
    assert torn.body.count(b"event: ") == 2
    whole = await call(generator.responses, asked)
    assert (whole.status, whole.json["error"]["param"]) == (400, "logprobs")
