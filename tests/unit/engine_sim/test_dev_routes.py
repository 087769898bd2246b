"""The developer mode of the stand-in engine, without a network."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatemesh_engine_sim.dev_routes import DevRoutes, dev_routes
from gatemesh_engine_sim.errors import ApiError
from gatemesh_engine_sim.service import Service
from gatemesh_engine_sim.weights import FILE, digest_of, fresh_parameters, write_weights

MakeService = Callable[..., Service]
Call = Callable[..., Any]


@pytest.fixture
def service(make_service: MakeService, tmp_path: Path) -> Service:
    """Give an engine with good weights."""
    good = fresh_parameters()
    write_weights(tmp_path, good, digest_of(good))
    found = make_service(dev_mode=True)
    found.weights.folder = tmp_path
    found.weights.load()
    return found


def test_it_has_to_be_switched_on(make_service: MakeService) -> None:
    """Without it the paths do not exist, as in vLLM."""
    assert dev_routes(make_service()) == []
    paths = {route.path for route in dev_routes(make_service(dev_mode=True))}
    assert {"/weight_checker", "/collective_rpc", "/reset_prefix_cache"} < paths


async def test_damage_is_named_and_mended(service: Service, call: Call) -> None:
    """Checksum, damage, compare, reload, compare."""
    routes = DevRoutes(service)
    sums = (await call(routes.weight_checker, {"action": "checksum"})).json["checksums"]
    await call(routes.damage, {"damage": "noise"})
    order = {"action": "compare", "baseline": sums}
    assert (await call(routes.weight_checker, order)).json == {
        "match": False,
        "mismatches": ["model.embed_tokens.weight"],
    }
    await call(routes.collective_rpc, {"method": "reload_weights"})
    assert (await call(routes.weight_checker, order)).json["match"] is True


async def test_a_reset_waits_for_requests(service: Service, call: Call) -> None:
    """Blocks in use cannot go."""
    routes = DevRoutes(service)
    service.weights.cached_fault = "nan"
    async with service.engine.slot():
        assert (await call(routes.reset_prefix_cache)).json == {"success": False}
    assert (await call(routes.reset_prefix_cache)).json == {"success": True}
    assert service.weights.cached_fault is None


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("weight_checker", {"action": "compare"}),
        ("weight_checker", {"action": "sing"}),
        ("collective_rpc", {"method": "reset_weights"}),
        ("damage", {"damage": "rust"}),
    ],
)
async def test_other_orders_are_refused(
    service: Service, call: Call, route: str, body: dict[str, object]
) -> None:
    """With the field at fault."""
    with pytest.raises(ApiError):
        await call(getattr(DevRoutes(service), route), body)


async def test_a_reload_of_a_cut_file_fails(service: Service, call: Call, tmp_path: Path) -> None:
    """500, and what was in memory stays."""
    before = service.weights.checksums()
    (tmp_path / FILE).write_bytes(b"")
    with pytest.raises(ApiError):
        await call(DevRoutes(service).collective_rpc, {"method": "reload_weights"})
    assert service.weights.checksums() == before
