"""The front door: every request comes in here, is guarded or relayed, and is counted."""

import asyncio
import logging
import time
from collections.abc import Callable

from aiohttp import hdrs, web
from multidict import CIMultiDict

from gatemesh_agent.answers import error_body, too_large
from gatemesh_agent.client import Client, allow_body, read_body
from gatemesh_agent.errors import ClientGoneError
from gatemesh_agent.guarded import Case, Guard
from gatemesh_agent.headers import REQUEST_ID, passing, usable_request_id, usable_traceparent
from gatemesh_agent.metrics import CLIENTS_GONE, REQUESTS, UNGUARDED
from gatemesh_agent.relay import Passage, Relay
from gatemesh_agent.reporting import Origin
from gatemesh_agent.requests import (
    Asked,
    Route,
    decoding_of,
    generates,
    prompt_fingerprint,
    route_of,
    tenant_of,
    understand,
)
from gatemesh_agent.upstream import Order

log = logging.getLogger(__name__)

NEVER_FORWARDED = (hdrs.HOST, hdrs.EXPECT)


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
    ) -> None:
        self._guard = guard
        self._relay = relay
        self._hash_key = hash_key
        self._max_body_bytes = max_body_bytes
        self._stall_s = stall_s
        self._new_id = new_id

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one request; a client that leaves ends its request at the engine, too."""
        path = request.raw_path.partition("?")[0]
        route = route_of(request.method, path)
        own_id = self._new_id()
        client = Client(request, request.headers.get(REQUEST_ID) or own_id, self._stall_s)
        try:
            await self._serve(request, client, route, own_id)
        except (ClientGoneError, asyncio.CancelledError) as gone:
            CLIENTS_GONE.inc()
            if isinstance(gone, asyncio.CancelledError):
                raise
        finally:
            REQUESTS.labels(route=route or "other", status=client.status).inc()
        return client.response

    async def _serve(
        self, request: web.BaseRequest, client: Client, route: Route | None, own_id: str
    ) -> None:
        if not request.raw_path.startswith("/"):
            body = error_body(400, "BadRequestError", "the request target must be a path")
            await client.fail(400, body)
        elif route is None:
            await self._pass_on(request, client, own_id)
        else:
            await self._guarded(request, client, route, own_id)

    async def _pass_on(self, request: web.BaseRequest, client: Client, own_id: str) -> None:
        await allow_body(request)
        body = request.content if request.body_exists else None
        path = request.raw_path.partition("?")[0]
        order = Order(request.method, request.raw_path, onward(request, client), body)
        origin = Origin(*ids_of(request, own_id))
        passage = Passage(origin, order, client, generates(request.method, path))
        await self._relay.serve(passage)

    async def _guarded(
        self, request: web.BaseRequest, client: Client, route: Route, own_id: str
    ) -> None:
        begun_s = time.monotonic()
        raw = await read_body(request, self._max_body_bytes)
        if raw is None:
            await client.fail(413, too_large(self._max_body_bytes), Connection="close")
            return
        asked = understand(route, raw)
        headers = onward(request, client, hdrs.CONTENT_LENGTH, hdrs.ACCEPT_ENCODING)
        order = Order(request.method, request.raw_path, headers, raw)
        if asked.body is None or hdrs.CONTENT_ENCODING in request.headers:
            UNGUARDED.labels(why="unreadable").inc()
            passage = Passage(Origin(*ids_of(request, own_id)), order, client, generates=True)
            await self._relay.serve(passage)
            return
        origin = self._origin(request, asked, own_id)
        await self._guard.serve(Case(asked, origin, order, client, begun_s))

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
