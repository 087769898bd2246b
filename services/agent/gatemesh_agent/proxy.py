"""The front door: every request comes in here, is guarded or relayed, and is counted."""

import asyncio
import logging
import time
from collections.abc import Callable

from aiohttp import hdrs, web
from multidict import CIMultiDict

from gatemesh_agent.answers import error_body, shape_of, too_large, too_slow
from gatemesh_agent.attribution import ClientRequest
from gatemesh_agent.cases import Case
from gatemesh_agent.client import Client, allow_body, read_body
from gatemesh_agent.door import Refusal
from gatemesh_agent.entrance import Entrance, begin_metering, settle, turn_away
from gatemesh_agent.errors import ClientGoneError
from gatemesh_agent.guarded import Guard
from gatemesh_agent.headers import (
    REQUEST_ID,
    SHADOW,
    passing,
    usable_request_id,
    usable_traceparent,
)
from gatemesh_agent.metrics import CLIENTS_GONE, REQUESTS
from gatemesh_agent.relay import Passage, Relay
from gatemesh_agent.reporting import Origin
from gatemesh_agent.requests import (
    ANY_SHAPE,
    Asked,
    Route,
    decoding_of,
    generates,
    in_background,
    prompt_fingerprint,
    route_of,
    tenant_of,
    understand,
    understand_any,
)
from gatemesh_agent.upstream import Order

log = logging.getLogger(__name__)

NEVER_FORWARDED = (hdrs.HOST, hdrs.EXPECT, SHADOW)


class Proxy:
    """Answers any request of any client."""

    def __init__(
        self,
        *,
        guard: Guard,
        relay: Relay,
        hash_key: bytes,
        max_body_bytes: int,
        stall_s: float,
        new_id: Callable[[], str],
        body_s: float,
        entrance: Entrance | None = None,
    ) -> None:
        self._guard = guard
        self._relay = relay
        self._hash_key = hash_key
        self._max_body_bytes = max_body_bytes
        self._stall_s = stall_s
        self._new_id = new_id
        self._body_s = body_s
        self._entrance = entrance

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one request; a client that leaves ends its request at the engine, too."""
        path = request.raw_path.partition("?")[0]
        route = route_of(request.method, path)
        own_id = self._new_id()
        shape = shape_of(route)
        client = Client(request, request.headers.get(REQUEST_ID) or own_id, self._stall_s, shape)
        try:
            await self._let_in(request, client, route, own_id)
        except (ClientGoneError, asyncio.CancelledError) as gone:
            CLIENTS_GONE.inc()
            if isinstance(gone, asyncio.CancelledError):
                raise
        finally:
            REQUESTS.labels(route=route or "other", status=client.status).inc()
        return client.response

    async def _let_in(
        self, request: web.BaseRequest, client: Client, route: Route | None, own_id: str
    ) -> None:
        if self._entrance is None:
            await self._serve(request, client, route, own_id)
            return
        path = request.raw_path.partition("?")[0]
        entry = self._entrance.enter(path, request.headers)
        if isinstance(entry, Refusal):
            await turn_away(client, entry)
        elif entry is None:
            await self._serve(request, client, route, own_id)
        else:
            begin_metering(client, entry)
            try:
                await self._serve(request, client, route, own_id)
            finally:
                settle(client, entry)

    async def _serve(
        self, request: web.BaseRequest, client: Client, route: Route | None, own_id: str
    ) -> None:
        if not request.raw_path.startswith("/"):
            body = error_body(400, "BadRequestError", "the request target must be a path")
            await client.fail(400, body)
        elif route is not None or is_of_any_shape(request):
            await self._guarded(request, client, route, own_id)
        else:
            await self._pass_on(request, client, own_id)

    async def _pass_on(self, request: web.BaseRequest, client: Client, own_id: str) -> None:
        await allow_body(request)
        body = request.content if request.body_exists else None
        path = request.raw_path.partition("?")[0]
        order = Order(request.method, request.raw_path, self._onward(request, client), body)
        origin = Origin(*ids_of(request, own_id))
        why = "path" if generates(request.method, path) else None
        passage = Passage(origin, order, client, why)
        await self._relay.serve(passage)

    async def _guarded(
        self, request: web.BaseRequest, client: Client, route: Route | None, own_id: str
    ) -> None:
        """Judge what can be judged; a path that takes any body has no route of its own."""
        begun_s = time.monotonic()
        try:
            async with asyncio.timeout(self._body_s):
                raw = await read_body(request, self._max_body_bytes)
        except TimeoutError:
            await client.fail(408, too_slow(self._body_s), Connection="close")
            return
        if raw is None:
            await client.fail(413, too_large(self._max_body_bytes), Connection="close")
            return
        asked = understand_any(raw) if route is None else understand(route, raw)
        headers = self._onward(request, client, hdrs.CONTENT_LENGTH, hdrs.ACCEPT_ENCODING)
        order = Order(request.method, request.raw_path, headers, raw)
        why = why_unguarded(asked, request)
        if asked is None or why is not None:
            passage = Passage(Origin(*ids_of(request, own_id)), order, client, why)
            await self._relay.serve(passage)
            return
        origin = self._origin(request, asked, own_id)
        wants_shadow = request.headers.get(SHADOW, "").strip().lower() == "always"
        posed = ClientRequest(asked, origin, order)
        await self._guard.serve(Case(posed, client, begun_s, wants_shadow))

    def _onward(self, request: web.BaseRequest, client: Client, *without: str) -> CIMultiDict[str]:
        """Return the headers that go to the engine: a key of ours is none of its business."""
        entrance = self._entrance
        if entrance is None:
            return onward(request, client, *without)
        headers = onward(request, client, *entrance.withheld, *without)
        if entrance.door is not None and entrance.engine_key is not None:
            headers[hdrs.AUTHORIZATION] = f"Bearer {entrance.engine_key}"
        return headers

    def _origin(self, request: web.BaseRequest, asked: Asked, own_id: str) -> Origin:
        body = asked.body or {}
        request_id, traceparent = ids_of(request, own_id)
        return Origin(
            request_id=request_id,
            traceparent=traceparent,
            tenant=tenant_of(request.headers.get(hdrs.AUTHORIZATION), body, self._hash_key),
            prompt_fingerprint=prompt_fingerprint(body, self._hash_key),
            decoding=decoding_of(body),
        )


def is_of_any_shape(request: web.BaseRequest) -> bool:
    """Return True for a path that takes the body of any other one."""
    return request.method == hdrs.METH_POST and request.raw_path.partition("?")[0] == ANY_SHAPE


def why_unguarded(asked: Asked | None, request: web.BaseRequest) -> str | None:
    """Return why the answer to a request for text cannot be judged; None when it can."""
    if asked is None:
        return "path"
    if asked.body is None or hdrs.CONTENT_ENCODING in request.headers:
        return "unreadable"
    return "background" if in_background(asked.route, asked.body) else None


def ids_of(request: web.BaseRequest, own_id: str) -> tuple[str, str | None]:
    """Return request id and trace context as messages carry them."""
    request_id = usable_request_id(request.headers.get(REQUEST_ID)) or own_id
    return request_id, usable_traceparent(request.headers.get("traceparent"))


def onward(request: web.BaseRequest, client: Client, *without: str) -> CIMultiDict[str]:
    """Return the headers that go to the engine; it learns the id that the client will see."""
    headers = passing(request.headers, *NEVER_FORWARDED, *without)
    if REQUEST_ID not in headers:
        headers[REQUEST_ID] = client.request_id
    return headers
