"""Everything beside text generation: models, health, metrics, tokens, embeddings, fault control."""

import hashlib
import math
import struct
from collections.abc import Iterable

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import ValidationError

from gatemesh_engine_sim.errors import ApiError, bad_request, malformed, unknown_model
from gatemesh_engine_sim.fault_plan import FaultSpec
from gatemesh_engine_sim.intake import parse_body
from gatemesh_engine_sim.prompts import Body, chat_ids
from gatemesh_engine_sim.service import Service, json_response

EMBEDDING_SIZE = 64

ALLOWED = {
    "allow_create_engine": False,
    "allow_sampling": True,
    "allow_logprobs": True,
    "allow_search_indices": False,
    "allow_view": True,
    "allow_fine_tuning": False,
    "organization": "*",
    "group": None,
    "is_blocking": False,
}
"""What the list of models says about every model."""

VERSION = "0.32.0"


@web.middleware
async def vllm_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refusals in vLLM's shapes: our own as `error`, wrong paths and methods as `detail`."""
    try:
        return await handler(request)
    except ApiError as error:
        return json_response(error.body(), error.status)
    except web.HTTPException as error:
        return json_response(orjson.dumps({"detail": error.reason}), error.status)


class PlainRoutes:
    """The small endpoints."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def health(self, _request: web.Request) -> web.Response:
        """200 with an empty body, also while hung or draining; 503 once dead."""
        return web.Response(status=503 if self._service.engine.is_dead else 200)

    async def load(self, _request: web.Request) -> web.Response:
        """Always 0, as vLLM says unless told to count."""
        return json_response(b'{"server_load":0}')

    async def version(self, _request: web.Request) -> web.Response:
        """The vLLM release that is imitated."""
        return json_response(orjson.dumps({"version": VERSION}))

    async def models(self, _request: web.Request) -> web.Response:
        """The one model."""
        settings = self._service.settings
        created = int(self._service.wall_clock())
        name = f"modelperm-{self._service.new_id()}"
        model = {
            "id": settings.model,
            "object": "model",
            "created": created,
            "owned_by": "vllm",
            "root": settings.model,
            "parent": None,
            "max_model_len": settings.max_model_len,
            "permission": [
                {"id": name, "object": "model_permission", "created": created, **ALLOWED}
            ],
        }
        return json_response(orjson.dumps({"object": "list", "data": [model]}))

    async def metrics(self, _request: web.Request) -> web.Response:
        """Prometheus text under vLLM's names."""
        engine = self._service.engine
        self._service.metrics.observe_load(
            running=engine.running, waiting=engine.waiting, capacity=engine.capacity
        )
        return web.Response(
            body=self._service.metrics.page(),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        )

    async def tokenize(self, request: web.Request) -> web.Response:
        """Token ids of `prompt` or of `messages`, whose end is ordered as in a chat."""
        body = parse_body(await request.read())
        words = self._service.library.vocabulary
        chat = "messages" in body
        ids = chat_ids(body, words) if chat else words.encode(_string(body, "prompt"))
        answer = {
            "count": len(ids),
            "max_model_len": self._service.settings.max_model_len,
            "tokens": ids,
            "token_strs": None,
        }
        return json_response(orjson.dumps(answer))

    async def detokenize(self, request: web.Request) -> web.Response:
        """The text of `tokens`."""
        body = parse_body(await request.read())
        tokens = body.get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(one, int) for one in tokens):
            raise malformed("list_type", "Input should be a valid list", "tokens", value=tokens)
        text = self._service.library.vocabulary.decode(tokens, show_special=True)
        return json_response(orjson.dumps({"prompt": text}))

    async def embeddings(self, request: web.Request) -> web.Response:
        """A unit vector per input; equal texts have equal vectors."""
        service = self._service
        body = parse_body(await request.read())
        model = body.get("model") or service.settings.model
        if model != service.settings.model:
            raise unknown_model(str(model), service.settings.model)
        texts = body.get("input")
        texts = [texts] if isinstance(texts, str) else texts
        if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
            raise malformed("string_type", "Input should be a valid string", "input", value=texts)
        tokens = sum(len(service.library.vocabulary.encode(text)) for text in texts)
        answer = {
            "id": f"embd-{service.new_id()}",
            "object": "list",
            "created": int(service.wall_clock()),
            "model": model,
            "data": [
                {"index": index, "object": "embedding", "embedding": embedding(text)}
                for index, text in enumerate(texts)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0},
        }
        return json_response(orjson.dumps(answer))

    async def set_fault(self, request: web.Request) -> web.Response:
        """`POST /sim/fault`: from now on this fault strikes."""
        body = parse_body(await request.read())
        try:
            spec = FaultSpec.model_validate(body)
        except ValidationError as error:
            problem = error.errors()[0]
            raise bad_request(
                f"{problem['loc'][0]}: {problem['msg']}", str(problem["loc"][0])
            ) from error
        if spec.fault not in self._service.faults:
            raise bad_request(
                f"fault: no fault is called {spec.fault!r}; see GET /sim/faults", "fault"
            )
        self._service.plan.set_control(spec)
        return self._fault_response()

    async def get_fault(self, _request: web.Request) -> web.Response:
        """`GET /sim/fault`: what strikes by control, or null; and how many requests it struck."""
        return self._fault_response()

    async def clear_fault(self, _request: web.Request) -> web.Response:
        """`DELETE /sim/fault`: back to clean answers."""
        self._service.plan.set_control(None)
        return self._fault_response()

    async def list_faults(self, _request: web.Request) -> web.Response:
        """`GET /sim/faults`: every kind with what it does."""
        table = {name: fault.promise for name, fault in self._service.faults.items()}
        return json_response(orjson.dumps(table))

    def _fault_response(self) -> web.Response:
        plan = self._service.plan
        spec = plan.control.model_dump() if plan.control else None
        return json_response(orjson.dumps({"fault": spec, "struck": plan.struck}))


def embedding(text: str, size: int = EMBEDDING_SIZE) -> list[float]:
    """float[size] of length 1, made of the text's hash."""
    raw = hashlib.shake_128(text.encode("utf-8", "surrogatepass")).digest(4 * size)
    return _unit([number / 2**31 - 1 for (number,) in struct.iter_unpack("<I", raw)])


def _unit(numbers: Iterable[float]) -> list[float]:
    vector = list(numbers)
    length = math.hypot(*vector)
    return [number / length for number in vector]


def _string(body: Body, name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise malformed("string_type", "Input should be a valid string", name, value=value)
    return value
