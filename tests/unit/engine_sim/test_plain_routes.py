"""The small endpoints, without a network."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from gatemesh_engine_sim.errors import ApiError, draining
from gatemesh_engine_sim.plain_routes import PlainRoutes, embedding, vllm_errors
from gatemesh_engine_sim.service import Service

MakeService = Callable[..., Service]
Call = Callable[..., Any]


async def test_health_until_death(make_service: MakeService, call: Call) -> None:
    """200 and empty, then 503."""
    service = make_service()
    plain = PlainRoutes(service)
    assert (await call(plain.health)).status == 200
    service.engine.die()
    assert (await call(plain.health)).status == 503


async def test_models(make_service: MakeService, call: Call) -> None:
    """Name and length of the one model."""
    answer = await call(PlainRoutes(make_service(model="m", max_model_len=100)).models)
    [model] = answer.json["data"]
    assert (model["id"], model["max_model_len"], model["owned_by"]) == ("m", 100, "vllm")


async def test_version_and_load(make_service: MakeService, call: Call) -> None:
    """Fixed answers."""
    plain = PlainRoutes(make_service())
    assert (await call(plain.version)).json == {"version": "0.32.0"}
    assert (await call(plain.load)).json == {"server_load": 0}


async def test_metrics_page(make_service: MakeService, call: Call) -> None:
    """Prometheus text."""
    answer = await call(PlainRoutes(make_service()).metrics)
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")


async def test_tokens_there_and_back(make_service: MakeService, call: Call) -> None:
    """Text to ids to text; conversations too."""
    plain = PlainRoutes(make_service())
    ids = (await call(plain.tokenize, {"prompt": "Hello 你好"})).json
    assert ids["count"] == len(ids["tokens"])
    text = await call(plain.detokenize, {"tokens": ids["tokens"]})
    assert text.json == {"prompt": "Hello 你好"}
    chat = await call(plain.tokenize, {"messages": [{"role": "user", "content": "x"}]})
    assert chat.json["tokens"][0] == 1


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("tokenize", {}),
        ("detokenize", {"tokens": "x"}),
        ("embeddings", {"input": 7}),
        ("embeddings", {"input": "x", "model": "other"}),
        ("set_fault", {"fault": "odd"}),
        ("set_fault", {"fault": "nan", "probability": 2}),
        ("set_fault", {}),
    ],
)
async def test_refusals(
    make_service: MakeService, call: Call, name: str, body: dict[str, object]
) -> None:
    """With an error that says what is wrong."""
    handlers = PlainRoutes(make_service())
    table = {
        "tokenize": handlers.tokenize,
        "detokenize": handlers.detokenize,
        "embeddings": handlers.embeddings,
        "set_fault": handlers.set_fault,
    }
    with pytest.raises(ApiError) as refusal:
        await call(table[name], body)
    assert refusal.value.status in {400, 404}


async def test_embeddings(make_service: MakeService, call: Call) -> None:
    """One per input, equal for equal texts."""
    answer = await call(PlainRoutes(make_service()).embeddings, {"input": ["a", "b", "a"]})
    first, second, third = (one["embedding"] for one in answer.json["data"])
    assert first == third != second


def test_embedding_is_a_unit_vector() -> None:
    """For the empty text too."""
    assert math.hypot(*embedding("")) == pytest.approx(1.0)
    assert len(embedding("x", 8)) == 8


async def test_fault_control(make_service: MakeService, call: Call) -> None:
    """Set, read, taken back."""
    service = make_service()
    plain = PlainRoutes(service)
    order = {"fault": "nan", "probability": 1.0, "after_tokens": 0, "requests": None}
    assert (await call(plain.set_fault, order)).json == {"fault": order, "struck": 0}
    assert service.plan.choose(None, 0.0) is not None
    assert (await call(plain.get_fault)).json == {"fault": order, "struck": 1}
    assert (await call(plain.clear_fault)).json == {"fault": None, "struck": 1}
    assert service.plan.choose(None, 0.0) is None


async def test_fault_list(make_service: MakeService, call: Call) -> None:
    """Every name with its promise."""
    service = make_service()
    listed = (await call(PlainRoutes(service).list_faults)).json
    assert set(listed) == set(service.faults)
    assert all(listed.values())


async def test_errors_in_vllms_shapes(call: Call) -> None:
    """Own refusals as `error`, those of the router as `detail`."""

    async def refuse(_request: web.Request) -> web.StreamResponse:
        raise draining()

    async def miss(_request: web.Request) -> web.StreamResponse:
        raise web.HTTPNotFound

    refused = await call(lambda request: vllm_errors(request, refuse))
    missed = await call(lambda request: vllm_errors(request, miss))
    assert (refused.status, refused.json["error"]["code"]) == (500, 500)
    assert (missed.status, missed.json) == (404, {"detail": "Not Found"})
