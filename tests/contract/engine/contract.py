"""What the mesh relies on from an engine; the simulated one and the real one agree."""

import asyncio
import itertools
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
import pytest
from tests.alike import alike_later

DEADLINE_S = 30.0

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
STORY = [{"role": "user", "content": "Write a short story about a lighthouse keeper."}]


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of one response."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        """The body parsed."""
        return orjson.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The events of a stream; the end mark is checked and dropped."""
        *events, end = [one[6:] for one in self.body.split(b"\n\n") if one]
        assert end == b"[DONE]"
        return [orjson.loads(event) for event in events]


class Target:
    """An engine to talk to."""

    def __init__(self, session: aiohttp.ClientSession, url: str, model: str) -> None:
        self.session = session
        self.url = url
        self.model = model

    async def get(self, path: str) -> Answer:
        """One GET."""
        async with self.session.get(self.url + path) as response:
            return Answer(response.status, await response.read())

    async def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> Answer:
        """One POST of JSON, or of the given bytes."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        sent = {"Content-Type": "application/json"} | (headers or {})
        async with self.session.post(self.url + path, data=raw, headers=sent) as response:
            return Answer(response.status, await response.read())

    async def chat(self, **body: Any) -> Answer:
        """A greedy chat request, changed by keywords."""
        default = {"model": self.model, "messages": QUESTION, "max_tokens": 8, "temperature": 0}
        return await self.post("/v1/chat/completions", default | body)

    async def complete(self, **body: Any) -> Answer:
        """A greedy completion, changed by keywords."""
        default = {"model": self.model, "prompt": "The sea is", "max_tokens": 4, "temperature": 0}
        return await self.post("/v1/completions", default | body)

    async def running(self) -> float:
        """The gauge of running requests."""
        lines = (await self.get("/metrics")).body.decode().splitlines()
        [line] = [one for one in lines if one.startswith("vllm:num_requests_running{")]
        return float(line.split()[-1])


def joined(events: list[Any], index: int = 0) -> str:
    """The text of one choice of a chat stream."""
    choices = itertools.chain(*(event["choices"] for event in events))
    return "".join(one["delta"].get("content", "") for one in choices if one["index"] == index)


def named_events(body: bytes) -> list[Any]:
    """The events of a stream whose events have names, each that of its type."""
    pairs = [event.split(b"\n") for event in body.split(b"\n\n") if event]
    found = [orjson.loads(data.removeprefix(b"data: ")) for _, data in pairs]
    assert [name.decode() for name, _ in pairs] == [f"event: {each['type']}" for each in found]
    return found


def same_but_ids(body: bytes) -> Any:
    """The body without what differs from request to request, and without log probabilities."""
    value = orjson.loads(body)
    for choice in value["choices"]:
        choice["logprobs"] = None
    return value | {"id": "", "created": 0}


class EngineContract:
    """Needs a fixture `engine` that answers."""

    async def test_health_is_empty(self, engine: Target) -> None:
        """For the executor and balancers."""
        assert await engine.get("/health") == Answer(200, b"")
        assert (await engine.post("/ping", b"")).status == 200

    async def test_model_is_listed(self, engine: Target) -> None:
        """With the length that limits a prompt."""
        [model] = (await engine.get("/v1/models")).json["data"]
        assert model["id"] == engine.model
        assert model["max_model_len"] > 100

    async def test_whole_chat_shape(self, engine: Target) -> None:
        """Keys in their order: the agent hands bytes on."""
        answer = await engine.chat()
        assert answer.status == 200
        assert list(answer.json) == [
            *("id", "object", "created", "model", "choices", "service_tier"),
            *("system_fingerprint", "usage", "prompt_logprobs", "prompt_token_ids"),
            *("prompt_text", "kv_transfer_params", "ec_transfer_params", "metrics"),
        ]
        [choice] = answer.json["choices"]
        assert list(choice) == [
            *("index", "message", "logprobs", "finish_reason", "stop_reason"),
            *("token_ids", "routed_experts"),
        ]
        assert choice["logprobs"] is None
        assert "Paris" in choice["message"]["content"]
        assert orjson.dumps(answer.json) == answer.body

    async def test_stream_shape(self, engine: Target) -> None:
        """Role first, one event per token, the reason in the last token's own event."""
        answer = await engine.chat(stream=True)
        opening, *tokens = answer.events
        assert opening["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        assert list(opening)[-2:] == ["prompt_token_ids", "prompt_text"]
        assert list(tokens[0]["choices"][0]) == [
            *("index", "delta", "logprobs", "finish_reason", "token_ids"),
        ]
        assert tokens[0]["choices"][0]["finish_reason"] is None
        last = tokens[-1]
        assert last["choices"][0]["finish_reason"] in {"stop", "length"}
        assert last["choices"][0]["stop_reason"] is None
        assert "system_fingerprint" in last

    async def test_stream_and_whole_tell_the_same(self, engine: Target) -> None:
        """At temperature 0."""
        whole, stream = await engine.chat(), await engine.chat(stream=True)
        assert joined(stream.events) == whole.json["choices"][0]["message"]["content"]

    async def test_response_stream_shape(self, engine: Target) -> None:
        """Named events without an end mark; the last one repeats the text and says how it ended."""
        asked = {"model": engine.model, "input": "Tell me about the sea.", "temperature": 0}
        body = asked | {"max_output_tokens": 6, "stream": True}
        answer = await engine.post("/v1/responses", body)
        events = named_events(answer.body)
        kinds = [event["type"] for event in events]
        assert kinds[:2] == ["response.created", "response.in_progress"]
        assert kinds[-4:] == [
            *("response.output_text.done", "response.content_part.done"),
            *("response.output_item.done", "response.completed"),
        ]
        deltas = [each for each in events if each["type"] == "response.output_text.delta"]
        assert all(delta["logprobs"] == [] for delta in deltas)
        [item] = events[-1]["response"]["output"]
        assert "".join(delta["delta"] for delta in deltas) == item["content"][0]["text"]
        assert item["content"][0]["logprobs"] is None
        assert events[-1]["response"]["status"] == "incomplete"
        assert events[-1]["response"]["top_logprobs"] is None

    async def test_response_logprobs_are_lists(self, engine: Target) -> None:
        """Asked by inclusion; refused above the limit."""
        include = ["message.output_text.logprobs"]
        body = {"model": engine.model, "input": "Hi", "max_output_tokens": 4, "include": include}
        answer = await engine.post("/v1/responses", body | {"top_logprobs": 2})
        [item] = answer.json["output"]
        first = item["content"][0]["logprobs"][0]
        assert list(first) == ["token", "bytes", "logprob", "top_logprobs"]
        assert len(first["top_logprobs"]) == 2
        assert answer.json["top_logprobs"] == 2
        refused = await engine.post("/v1/responses", body | {"top_logprobs": 21})
        assert (refused.status, refused.json["error"]["param"]) == (400, "logprobs")

    async def test_message_stream_shape(self, engine: Target) -> None:
        """Named events without an end mark; the reason comes before the last one."""
        body = {"model": engine.model, "messages": STORY, "max_tokens": 6, "temperature": 0}
        whole = await engine.post("/v1/messages", body)
        events = named_events((await engine.post("/v1/messages", body | {"stream": True})).body)
        deltas = [each for each in events if each["type"] == "content_block_delta"]
        assert [each["type"] for each in events if each not in deltas] == [
            *("message_start", "content_block_start", "content_block_stop"),
            *("message_delta", "message_stop"),
        ]
        text = "".join(each["delta"]["text"] for each in deltas)
        assert text == whole.json["content"][0]["text"]
        assert events[-2]["delta"]["stop_reason"] == whole.json["stop_reason"] == "max_tokens"

    @pytest.mark.parametrize("route", ["chat", "complete"])
    async def test_logprobs_change_nothing_else(self, engine: Target, route: str) -> None:
        """What the agent adds, it can take out again."""
        ask = {"chat": engine.chat, "complete": engine.complete}[route]
        added: dict[str, Any] = {"logprobs": True, "top_logprobs": 20}
        if route == "complete":
            added = {"logprobs": 20}
        plain, asked = await ask(), await ask(**added)
        assert same_but_ids(plain.body) == same_but_ids(asked.body)

        async def both() -> tuple[list[Any], list[Any]]:
            answers = await ask(stream=True), await ask(stream=True, **added)
            one, other = ([same_but_ids(orjson.dumps(it)) for it in a.events] for a in answers)
            return one, other

        one, other = await alike_later(both)
        assert one == other

    @pytest.mark.parametrize("count", [0, 1, 5, 20])
    async def test_chat_logprobs(self, engine: Target, count: int) -> None:
        """So many candidates per token; the chosen one first and, at temperature 0, likeliest."""
        answer = await engine.chat(logprobs=True, top_logprobs=count)
        [choice] = answer.json["choices"]
        for entry in choice["logprobs"]["content"]:
            assert list(entry) == ["token", "logprob", "bytes", "top_logprobs"]
            assert bytes(entry["bytes"]).decode() == entry["token"]
            assert len(entry["top_logprobs"]) == count
            assert all(one["logprob"] <= entry["logprob"] for one in entry["top_logprobs"])
        assert answer.json["usage"]["completion_tokens"] == len(choice["logprobs"]["content"])

    async def test_completion_logprobs(self, engine: Target) -> None:
        """Four lists of equal length."""
        [choice] = (await engine.complete(logprobs=3)).json["choices"]
        lists = choice["logprobs"]
        assert list(lists) == ["text_offset", "token_logprobs", "tokens", "top_logprobs"]
        assert {len(one) for one in lists.values()} == {4}
        assert lists["text_offset"][0] == 0
        assert "".join(lists["tokens"]) == choice["text"]

    async def test_tokens_named_by_ids(self, engine: Target) -> None:
        """On both routes, and the same ids as the engine returns apart."""
        asked = {"return_tokens_as_token_ids": True, "return_token_ids": True}
        [choice] = (await engine.chat(logprobs=True, top_logprobs=2, **asked)).json["choices"]
        entries = choice["logprobs"]["content"]
        names = [f"token_id:{one}" for one in choice["token_ids"]]
        assert [one["token"] for one in entries] == names
        assert [one["top_logprobs"][0]["token"] for one in entries] == names
        assert b"".join(map(bytes, (one["bytes"] for one in entries[:1]))).decode()[:1] != "t"
        [choice] = (await engine.complete(logprobs=1, **asked)).json["choices"]
        assert choice["logprobs"]["tokens"] == [f"token_id:{one}" for one in choice["token_ids"]]

    async def test_tokenize_gives_the_chat_prompt(self, engine: Target) -> None:
        """The ids of a conversation with the model's turn opened."""
        chat = (await engine.chat(return_token_ids=True)).json
        body = {"model": engine.model, "messages": QUESTION, "add_generation_prompt": True}
        assert (await engine.post("/tokenize", body)).json["tokens"] == chat["prompt_token_ids"]

    async def test_prompt_logprobs_judge_an_answer(self, engine: Target) -> None:
        """Own figures for its own answer, much lower ones for other tokens."""
        chat = (await engine.chat(return_token_ids=True, logprobs=True, max_tokens=12)).json
        [choice] = chat["choices"]
        prompt, answer = chat["prompt_token_ids"], choice["token_ids"]
        own = [one["logprob"] for one in choice["logprobs"]["content"]]
        good = await self.score(engine, prompt, answer)
        assert max(abs(a - b) for a, b in zip(own, good, strict=True)) < 0.5
        garbage = await self.score(engine, prompt, [one + 7 for one in answer])
        assert sum(garbage) / len(garbage) < sum(good) / len(good) - 3

    async def score(self, engine: Target, prompt: list[int], answer: list[int]) -> list[float]:
        """Log probabilities of the answer's tokens, as `shadow` asks for them."""
        scored = await engine.complete(prompt=[*prompt, *answer], max_tokens=1, prompt_logprobs=1)
        [choice] = scored.json["choices"]
        first, *entries = choice["prompt_logprobs"]
        assert first is None
        assert all(len(entry) <= 2 for entry in entries)
        named = zip(answer, choice["prompt_logprobs"][len(prompt) :], strict=True)
        return [entry[str(token)]["logprob"] for token, entry in named]

    async def test_whole_completion_shape(self, engine: Target) -> None:
        """Keys in their order."""
        answer = (await engine.complete()).json
        assert list(answer) == [
            *("id", "object", "created", "model", "choices", "service_tier"),
            *("system_fingerprint", "usage", "kv_transfer_params", "ec_transfer_params", "metrics"),
        ]
        assert list(answer["choices"][0]) == [
            *("index", "text", "logprobs", "finish_reason", "stop_reason", "token_ids"),
            *("prompt_logprobs", "prompt_token_ids", "routed_experts"),
        ]
        assert answer["usage"]["completion_tokens"] == 4

    async def test_completion_stream_shape(self, engine: Target) -> None:
        """No role event; each event is one token."""
        events = (await engine.complete(stream=True)).events
        assert len(events) == 4
        assert list(events[0]["choices"][0]) == [
            *("index", "text", "logprobs", "finish_reason", "stop_reason"),
            *("prompt_token_ids", "token_ids"),
        ]
        assert events[-1]["choices"][0]["finish_reason"] == "length"

    async def test_length_limit(self, engine: Target) -> None:
        """Is what was asked, no more and no less."""
        answer = (await engine.chat(messages=STORY, max_tokens=5)).json
        assert answer["choices"][0]["finish_reason"] == "length"
        assert answer["usage"]["completion_tokens"] == 5

    @pytest.mark.parametrize("tokens", [5, 60])
    async def test_a_token_that_is_counted_shows(self, engine: Target, tokens: int) -> None:
        """As a byte at least, but for the one that ends the answer; each answer says its end."""
        for messages in (QUESTION, STORY):
            answer = (await engine.chat(messages=messages, max_tokens=tokens)).json
            [choice] = answer["choices"]
            shown = len(choice["message"]["content"].encode())
            assert answer["usage"]["completion_tokens"] <= shown + 1
            assert choice["finish_reason"] in {"stop", "length"}

    async def test_usage_event(self, engine: Target) -> None:
        """Comes last and takes the fingerprint with it."""
        *tokens, usage = (
            await engine.chat(stream=True, stream_options={"include_usage": True})
        ).events
        assert usage["choices"] == []
        assert list(usage)[-2:] == ["usage", "system_fingerprint"]
        counts = usage["usage"]
        assert counts["prompt_tokens"] + counts["completion_tokens"] == counts["total_tokens"]
        assert counts["completion_tokens"] == len(tokens) - 1

    async def test_token_ids(self, engine: Target) -> None:
        """The same, streamed and whole, on demand only."""
        whole = (await engine.chat(return_token_ids=True)).json
        opening, *tokens = (await engine.chat(return_token_ids=True, stream=True)).events
        assert opening["prompt_token_ids"] == whole["prompt_token_ids"]
        ids = [number for event in tokens for number in event["choices"][0]["token_ids"]]
        assert ids == whole["choices"][0]["token_ids"]
        assert (await engine.chat()).json["prompt_token_ids"] is None

    async def test_stop_string(self, engine: Target) -> None:
        """Nothing of it is shown, also when streamed."""
        body = {"messages": STORY, "max_tokens": 40, "stop": ["and the"]}
        whole = (await engine.chat(**body)).json["choices"][0]
        events = (await engine.chat(**body, stream=True)).events
        assert "and the" not in whole["message"]["content"]
        assert joined(events) == whole["message"]["content"]
        assert events[-1]["choices"][0]["stop_reason"] == whole["stop_reason"] == "and the"

    async def test_several_choices(self, engine: Target) -> None:
        """Each under its index, streamed and not."""
        body = {"n": 2, "temperature": 1.0, "seed": 7}
        assert [one["index"] for one in (await engine.chat(**body)).json["choices"]] == [0, 1]
        events = (await engine.chat(**body, stream=True)).events
        assert {one["choices"][0]["index"] for one in events} == {0, 1}

    async def test_request_id_is_kept(self, engine: Target) -> None:
        """The thread that ties evidence to a request."""
        body = {"model": engine.model, "messages": QUESTION, "max_tokens": 2}
        answer = await engine.post("/v1/chat/completions", body, {"X-Request-Id": "my-id"})
        assert answer.json["id"] == "chatcmpl-my-id"

    async def test_refusals(self, engine: Target) -> None:
        """Status, type and parameter."""
        cases = {
            (404, "NotFoundError", "model"): await engine.chat(model="no-such-model"),
            (400, "Bad Request", "body"): await engine.post("/v1/chat/completions", b"[]"),
            (400, "Bad Request", "body.messages"): await engine.chat(messages="x"),
            (400, "BadRequestError", None): await engine.chat(n=2),
            (400, "BadRequestError", "logprobs"): await engine.chat(logprobs=True, top_logprobs=21),
            (400, "BadRequestError", "top_logprobs"): await engine.chat(top_logprobs=3),
            (400, "BadRequestError", "max_tokens"): await engine.chat(max_tokens=10**7),
        }
        for (status, kind, param), answer in cases.items():
            error = answer.json["error"]
            assert list(error) == ["message", "type", "param", "code"]
            assert (answer.status, error["type"], error["param"]) == (status, kind, param)

    async def test_late_refusal_is_an_event(self, engine: Target) -> None:
        """HTTP 200, then the error."""
        answer = await engine.chat(logprobs=True, top_logprobs=21, stream=True)
        assert answer.status == 200
        assert answer.events[0]["error"]["code"] == 400

    async def test_unknown_path(self, engine: Target) -> None:
        """Another shape than other errors."""
        assert await engine.get("/no/such/path") == Answer(404, b'{"detail":"Not Found"}')

    async def test_tokens_there_and_back(self, engine: Target) -> None:
        """Chinese and emoji too."""
        text = "Hello 你好 🌸"
        ids = (await engine.post("/tokenize", {"model": engine.model, "prompt": text})).json
        assert ids["count"] == len(ids["tokens"])
        back = {"model": engine.model, "tokens": ids["tokens"]}
        assert text in (await engine.post("/detokenize", back)).json["prompt"]

    async def test_metrics_names(self, engine: Target) -> None:
        """Those the mesh scrapes."""
        page = (await engine.get("/metrics")).body.decode()
        for name in (
            *("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"),
            *("prompt_tokens_total", "generation_tokens_total", "request_success_total"),
            *("time_to_first_token_seconds_bucket", "e2e_request_latency_seconds_count"),
            *("inter_token_latency_seconds_sum", "request_queue_time_seconds_count"),
        ):
            assert f"vllm:{name}{{" in page

    async def test_leaving_client_frees_the_engine(self, engine: Target) -> None:
        """Its request is aborted."""
        body = {"model": engine.model, "messages": STORY, "max_tokens": 400, "stream": True}
        body["ignore_eos"] = True
        response = await engine.session.post(
            engine.url + "/v1/chat/completions",
            json=body,
            headers={"X-Sim-Fault": "hang;after_tokens=2"},
        )
        await response.content.readany()
        assert await engine.running() == 1
        response.close()
        async with asyncio.timeout(DEADLINE_S):
            while await engine.running():  # noqa: ASYNC110 - another process, polled over HTTP
                await asyncio.sleep(0.02)
