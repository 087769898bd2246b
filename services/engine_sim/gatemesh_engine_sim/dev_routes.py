"""vLLM's endpoints of the developer mode: checksums, reload, prefix cache; and damage on order."""

from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web

from gatemesh_engine_sim.errors import bad_request, internal_error
from gatemesh_engine_sim.intake import parse_body
from gatemesh_engine_sim.service import Service, json_response
from gatemesh_engine_sim.weights import WeightsError

Handler = Callable[[web.Request], Awaitable[web.Response]]


class DevRoutes:
    """Acts on the weights in memory and on the prefix cache."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._weights = service.weights

    async def weight_checker(self, request: web.Request) -> web.Response:
        """`POST /weight_checker`: `checksum` or `compare` with a `baseline`."""
        body = parse_body(await request.read())
        sums = self._weights.checksums()
        if body.get("action") == "checksum":
            return json_response(orjson.dumps({"checksums": sums}))
        baseline = body.get("baseline")
        if body.get("action") != "compare" or not isinstance(baseline, dict):
            raise bad_request("action='compare' requires a 'baseline' object", "baseline")
        wrong = sorted(n for n in sums.keys() | baseline.keys() if sums.get(n) != baseline.get(n))
        return json_response(orjson.dumps({"match": not wrong, "mismatches": wrong}))

    async def collective_rpc(self, request: web.Request) -> web.Response:
        """`POST /collective_rpc`: only `reload_weights`."""
        body = parse_body(await request.read())
        if body.get("method") != "reload_weights":
            raise bad_request("the worker has no such method here", "method")
        try:
            self._weights.load()
        except WeightsError as error:
            raise internal_error() from error
        return json_response(b'{"results":[null]}')

    async def reset_prefix_cache(self, _request: web.Request) -> web.Response:
        """`POST /reset_prefix_cache`: fails while requests run."""
        free = not self._service.engine.running
        if free:
            self._weights.reset_cache()
        return json_response(orjson.dumps({"success": free}))

    async def damage(self, request: web.Request) -> web.Response:
        """`POST /sim/weights`: spoil what is in memory, `{"damage": "nan"}` or `noise`."""
        kind = parse_body(await request.read()).get("damage")
        if kind not in ("nan", "noise"):
            raise bad_request("damage: must be nan or noise", "damage")
        self._weights.damage(kind)
        return json_response(b"{}")


def dev_routes(service: Service) -> list[web.RouteDef]:
    """The routes of the developer mode; none when it is off."""
    if not service.settings.dev_mode:
        return []
    routes = DevRoutes(service)
    return [
        web.post("/weight_checker", routes.weight_checker),
        web.post("/collective_rpc", routes.collective_rpc),
        web.post("/reset_prefix_cache", routes.reset_prefix_cache),
        web.post("/sim/weights", routes.damage),
    ]
