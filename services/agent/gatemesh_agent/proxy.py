"""The front door: every request comes in here, is guarded or relayed, and is counted."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import lru_cache

from aiohttp import hdrs, web
from multidict import CIMultiDict
from prometheus_client import Counter

from gatemesh_agent.answers import error_body, shape_of, too_large, too_slow
from gatemesh_agent.attribution import ClientRequest
from gatemesh_agent.cases import Case
from gatemesh_agent.client import Client, allow_body, body_at_hand, read_body
from gatemesh_agent.door import Refusal
from gatemesh_agent.entrance import Entrance, authorization_in, begin_metering, settle, turn_away
from gatemesh_agent.errors import ClientGoneError
from gatemesh_agent.guarded import Guard
from gatemesh_agent.headers import (
    REQUEST_ID,
    RESCUE,
    SHADOW,
    passing,
    usable_request_id,
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
from gatemesh_common.spans import NO_SPANS, NoSpan, Span, Spans
from gatemesh_common.trace import usable

log = logging.getLogger(__name__)

TRACEPARENT = "traceparent"
Ids = tuple[str, str | None]
"""Request id and trace context."""
NEVER_FORWARDED = (hdrs.HOST, hdrs.EXPECT, SHADOW, RESCUE)


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
        spans: Spans = NO_SPANS,
    ) -> None:
        self._spans = spans
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
        request_id, parent = ids_of(request, own_id)
        span = self._begin(route, request_id, parent)
        try:
            await self._let_in(request, client, route, (request_id, span.traceparent))
        except (ClientGoneError, asyncio.CancelledError) as gone:
            CLIENTS_GONE.inc()
            if isinstance(gone, asyncio.CancelledError):
                raise
        finally:
            requests_that_ended(route or "other", client.status).inc()
            span.end(status=client.status)
        return client.response

    async def _let_in(
        self, request: web.BaseRequest, client: Client, route: Route | None, ids: Ids
    ) -> None:
        if self._entrance is None:
            await self._serve(request, client, route, ids)
            return
        path = request.raw_path.partition("?")[0]
        entry = self._entrance.enter(path, request.headers)
        if isinstance(entry, Refusal):
            await turn_away(client, entry)
        elif entry is None:
            await self._serve(request, client, route, ids)
        else:
            begin_metering(client, entry)
            try:
                await self._serve(request, client, route, ids)
            finally:
                settle(client, entry)

    def _begin(self, route: Route | None, request_id: str, parent: str | None) -> Span:
        """Begin the span of a request; where traces are off, the client's own one goes on."""
        if not self._spans.on:
            return NoSpan(parent)
        return self._spans.begin(
            f"request {route or 'other'}", parent, {"gatemesh.request_id": request_id}
        )

    def _onward(
        self, request: web.BaseRequest, client: Client, ids: Ids, *without: str
    ) -> CIMultiDict[str]:
        """Return the headers that go to the engine: its spans are under ours, our keys are not."""
        entrance = self._entrance
        withheld = () if entrance is None else entrance.withheld
        headers = onward(request, client, *withheld, *without)
        if entrance is not None and entrance.credential is not None:
            headers[hdrs.AUTHORIZATION] = entrance.credential
        if self._spans.on and ids[1]:
            headers[TRACEPARENT] = ids[1]
        return headers

    async def _serve(
        self, request: web.BaseRequest, client: Client, route: Route | None, ids: Ids
    ) -> None:
        if not request.raw_path.startswith("/"):
            body = error_body(400, "BadRequestError", "the request target must be a path")
            await client.fail(400, body)
        elif route is not None or is_of_any_shape(request):
            await self._guarded(request, client, route, ids)
        else:
            await self._pass_on(request, client, ids)

    async def _pass_on(self, request: web.BaseRequest, client: Client, ids: Ids) -> None:
        await allow_body(request)
        body = request.content if request.body_exists else None
        path = request.raw_path.partition("?")[0]
        order = Order(request.method, request.raw_path, self._onward(request, client, ids), body)
        origin = Origin(*ids)
        why = "path" if generates(request.method, path) else None
        passage = Passage(origin, order, client, why)
        await self._relay.serve(passage)

    async def _guarded(
        self, request: web.BaseRequest, client: Client, route: Route | None, ids: Ids
    ) -> None:
        """Judge what can be judged; a path that takes any body has no route of its own."""
        begun_s = time.monotonic()
        raw = body_at_hand(request, self._max_body_bytes)
        if raw is None:
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
        headers = self._onward(request, client, ids, hdrs.CONTENT_LENGTH, hdrs.ACCEPT_ENCODING)
        order = Order(request.method, request.raw_path, headers, raw)
        why = why_unguarded(asked, request)
        if asked is None or why is not None:
            passage = Passage(Origin(*ids), order, client, why)
            await self._relay.serve(passage)
            return
        origin = self._origin(request, asked, ids)
        wants_shadow = request.headers.get(SHADOW, "").strip().lower() == "always"
        tells_rescue = request.headers.get(RESCUE, "").strip().lower() == "tell"
        posed = ClientRequest(asked, origin, order)
        await self._guard.serve(Case(posed, client, begun_s, wants_shadow, tells_rescue))

    def _origin(self, request: web.BaseRequest, asked: Asked, ids: Ids) -> Origin:
        body = asked.body or {}
        request_id, traceparent = ids
        return Origin(
            request_id=request_id,
            traceparent=traceparent,
            tenant=tenant_of(authorization_in(request.headers), body, self._hash_key),
            prompt_fingerprint=prompt_fingerprint(body, self._hash_key),
            decoding=decoding_of(body),
        )


@lru_cache(maxsize=1024)
def requests_that_ended(route: str, status: int) -> Counter:
    """Return what counts them; finding it by its labels takes longer than counting."""
    return REQUESTS.labels(route=route, status=status)


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


def ids_of(request: web.BaseRequest, own_id: str) -> Ids:
    """Return request id and trace context as messages carry them."""
    request_id = usable_request_id(request.headers.get(REQUEST_ID)) or own_id
    return request_id, usable(request.headers.get(TRACEPARENT))


def onward(request: web.BaseRequest, client: Client, *without: str) -> CIMultiDict[str]:
    """Return the headers that go to the engine; it learns the id that the client will see."""
    headers = passing(request.headers, *NEVER_FORWARDED, *without)
    if REQUEST_ID not in headers:
        headers[REQUEST_ID] = client.request_id
    return headers
