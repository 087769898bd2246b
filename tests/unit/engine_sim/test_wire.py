"""The bytes on the wire."""

from collections.abc import Callable

import orjson
import pytest

from gatemesh_engine_sim.generation import Emission
from gatemesh_engine_sim.intake import Asked, Route
from gatemesh_engine_sim.steps import END_TOKEN, NAN, Candidate, Step
from gatemesh_engine_sim.wire import (
    Reply,
    completion_logprobs,
    stream_events,
)
from gatemesh_engine_sim.wires import wire_for

Ask = Callable[..., Asked]

WORD = Step("Hi", "Hi", 42, -0.5, (Candidate("Hi", -0.5), Candidate("Yo", -1.0)))
END = Step("", END_TOKEN, 2, -0.25, (Candidate(END_TOKEN, -0.25),))
SENT = [Emission(WORD, "Hi"), Emission(END, "", "stop")]

CHAT_HEAD = b'data: {"id":"chatcmpl-R","object":"chat.completion.chunk","created":5,"model":"sim",'


def events(asked: Asked) -> list[bytes]:
    """The stream of the short answer, without usage and end."""
    wire = wire_for(Reply("R", 5, asked))
    return b"".join(event for _, event in stream_events(wire, [SENT])).split(b"\n\n")[:-1]


def test_chat_stream_without_logprobs(ask: Ask) -> None:
    """Byte for byte as recorded, ids and times apart."""
    assert events(ask()) == [
        CHAT_HEAD + b'"choices":[{"index":0,"delta":{"role":"assistant","content":""},'
        b'"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}',
        CHAT_HEAD + b'"choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,'
        b'"finish_reason":null,"token_ids":null}]}',
        CHAT_HEAD + b'"choices":[{"index":0,"delta":{"content":""},"logprobs":null,'
        b'"finish_reason":"stop","stop_reason":null,"token_ids":null}],'
        b'"system_fingerprint":"vllm-0.32.0-51eab846"}',
    ]


def test_chat_stream_with_ids_and_logprobs(ask: Ask) -> None:
    """Each chunk holds the tokens of this chunk only."""
    opening, word, _ = events(ask(logprobs=True, top_logprobs=1, return_token_ids=True))
    assert b'"prompt_token_ids":[1,' in opening
    assert word.endswith(
        b'"logprobs":{"content":[{"token":"Hi","logprob":-0.5,"bytes":[72,105],'
        b'"top_logprobs":[{"token":"Hi","logprob":-0.5,"bytes":[72,105]}]}]},'
        b'"finish_reason":null,"token_ids":[42]}]}'
    )


def test_fingerprint_moves_into_the_usage_event(ask: Ask) -> None:
    """Where usage was asked for."""
    asked = ask(stream_options={"include_usage": True})
    assert all(b"system_fingerprint" not in event for event in events(asked))
    total = len(asked.prompt_ids)
    assert wire_for(Reply("R", 5, asked)).usage(2) == (
        CHAT_HEAD + b'"choices":[],"usage":{"prompt_tokens":%d,"total_tokens":%d,'
        b'"completion_tokens":2},"system_fingerprint":"vllm-0.32.0-51eab846"}\n\n'
        % (total, total + 2)
    )


def test_stop_string_is_named(ask: Ask) -> None:
    """The delta stays, empty."""
    wire = wire_for(Reply("R", 5, ask()))
    event = wire.event(0, Emission(WORD, "", "stop", "Hi"), 0, first=False)
    assert b'"delta":{"content":""},' in event
    assert b'"finish_reason":"stop","stop_reason":"Hi"' in event


def test_chat_whole(ask: Ask) -> None:
    """Key for key in the recorded order."""
    asked = ask()
    total = len(asked.prompt_ids)
    assert wire_for(Reply("R", 5, asked)).whole([SENT]) == (
        b'{"id":"chatcmpl-R","object":"chat.completion","created":5,"model":"sim","choices":'
        b'[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null,'
        b'"annotations":null,"audio":null,"function_call":null,"reasoning":null},'
        b'"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null,'
        b'"routed_experts":null}],"service_tier":null,'
        b'"system_fingerprint":"vllm-0.32.0-51eab846","usage":{"prompt_tokens":%d,'
        b'"total_tokens":%d,"completion_tokens":2,"prompt_tokens_details":null,'
        b'"completion_tokens_details":null},"prompt_logprobs":null,"prompt_token_ids":null,'
        b'"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,'
        b'"metrics":null}' % (total, total + 2)
    )


@pytest.mark.parametrize("route", [Route.CHAT, Route.COMPLETIONS])
def test_whole_and_stream_tell_the_same(ask: Ask, route: Route) -> None:
    """Text, reasons and ids, for two choices."""
    asked = ask(route, n=2, return_token_ids=True)
    wire = wire_for(Reply("R", 5, asked))
    whole = orjson.loads(wire.whole([SENT, SENT[1:]]))
    texts, ids = ["", ""], [[], []]  # type: tuple[list[str], list[list[int]]]
    for _, part in stream_events(wire, [SENT, SENT[1:]]):
        for event in part.split(b"\n\n")[:-1]:
            [choice] = orjson.loads(event[6:])["choices"]
            texts[choice["index"]] += choice.get("text") or choice.get("delta", {}).get(
                "content", ""
            )
            ids[choice["index"]] += choice.get("token_ids") or []
    for choice, text, token_ids in zip(whole["choices"], texts, ids, strict=True):
        assert (choice.get("text", choice.get("message", {}).get("content"))) == text
        assert choice["token_ids"] == token_ids


def test_completion_events_have_no_role(ask: Ask) -> None:
    """One event per token."""
    parts = [orjson.loads(event[6:]) for event in events(ask(Route.COMPLETIONS, logprobs=2))]
    assert [part["id"] for part in parts] == ["cmpl-R", "cmpl-R"]
    assert parts[0]["choices"][0]["logprobs"] == {
        "text_offset": [0],
        "token_logprobs": [-0.5],
        "tokens": ["Hi"],
        "top_logprobs": [{"Hi": -0.5, "Yo": -1.0}],
    }
    assert parts[1]["choices"][0]["logprobs"]["text_offset"] == [2]


def test_candidates_that_read_alike_share_an_entry() -> None:
    """A habit of the completions route."""
    step = Step("", "", 7, -1.0, (Candidate("", -1.0), Candidate("", -2.0)))
    assert completion_logprobs([step], 5, 0)["top_logprobs"] == [{"": -2.0}]


def test_nan_is_null_in_streams(ask: Ask) -> None:
    """On both routes."""
    step = Step("", "x", 7, NAN, (Candidate("x", NAN),))
    for route, body in ((Route.CHAT, {"logprobs": True}), (Route.COMPLETIONS, {"logprobs": 1})):
        wire = wire_for(Reply("R", 5, ask(route, **body)))
        assert b":null" in wire.event(0, Emission(step, ""), 0, first=True).split(b"logprobs", 1)[1]


def test_completion_whole(ask: Ask) -> None:
    """Key for key as the real engine sends it."""
    asked = ask(Route.COMPLETIONS, return_token_ids=True, prompt=[300])
    assert wire_for(Reply("R", 5, asked)).whole([SENT]) == (
        b'{"id":"cmpl-R","object":"text_completion","created":5,"model":"sim","choices":'
        b'[{"index":0,"text":"Hi","logprobs":null,"finish_reason":"stop","stop_reason":null,'
        b'"token_ids":[42,2],"prompt_logprobs":null,"prompt_token_ids":[300],'
        b'"routed_experts":null}],"service_tier":null,'
        b'"system_fingerprint":"vllm-0.32.0-51eab846","usage":{"prompt_tokens":1,'
        b'"total_tokens":3,"completion_tokens":2,"prompt_tokens_details":null,'
        b'"completion_tokens_details":null},"kv_transfer_params":null,'
        b'"ec_transfer_params":null,"metrics":null}'
    )
