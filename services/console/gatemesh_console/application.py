"""The web application: routes, errors as pages, and what every answer is held to."""

import logging
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from gatemesh_common.database import DataRefusedError
from gatemesh_common.errors import (
    BrokerRefusedError,
    BrokerUnavailableError,
    DatabaseUnavailableError,
    GatemeshError,
    UnroutableError,
)
from gatemesh_console import actions, fleet, incidents, rules, signing_in, timeline
from gatemesh_console.desk import DATA_PATHS, Desk, is_part, page, words_of
from gatemesh_console.errors import (
    BadInputError,
    ForbiddenError,
    NotFoundError,
    NotSignedInError,
)
from gatemesh_console.guarding import HEADERS, HTTPS_HEADERS, SAFE_METHODS, is_own_page, local_path
from gatemesh_console.metrics import PAGES

log = logging.getLogger(__name__)
STATIC = Path(__file__).parent / "static"
STATUSES: dict[type[GatemeshError], int] = {
    BadInputError: 400,
    DataRefusedError: 400,
    ForbiddenError: 403,
    NotFoundError: 404,
    BrokerRefusedError: 502,
    UnroutableError: 502,
    BrokerUnavailableError: 503,
    DatabaseUnavailableError: 503,
}

ROUTES = (
    Route("/", fleet.fleet_page),
    Route("/gates.json", fleet.gates_data),
    Route("/instances/{instance_id:path}", fleet.instance_page),
    Route("/incidents", incidents.incidents_page),
    Route("/incidents/{incident_id}", incidents.incident_page),
    Route("/timeline", timeline.timeline_page),
    Route("/timeline/stream", timeline.timeline_stream),
    Route("/requests", actions.requests_page),
    Route("/requests/{message_id}", actions.request_page),
    Route("/actions", actions.action_form, methods=["GET"]),
    Route("/actions", actions.ask, methods=["POST"]),
    Route("/policy", rules.policy_page),
    Route("/sign-in", signing_in.sign_in_page, methods=["GET"]),
    Route("/sign-in", signing_in.sign_in, methods=["POST"]),
    Route("/sign-out", signing_in.sign_out, methods=["POST"]),
    Route("/choices", signing_in.choose, methods=["POST"]),
    Mount("/static", StaticFiles(directory=STATIC)),
)


def make_application(desk: Desk) -> Starlette:
    """Return the application that answers from this desk."""
    handlers: dict[Any, Any] = dict.fromkeys(STATUSES, on_fault)
    handlers |= {NotSignedInError: on_nobody, HTTPException: on_http_fault}
    application = Starlette(
        routes=ROUTES,
        exception_handlers=handlers,
        middleware=[Middleware(Guard, desk=desk)],
    )
    application.state.desk = desk
    return application


async def on_nobody(request: Request, error: Exception) -> Response:
    """Send people to the sign-in page, and back afterwards; scripts are told so in a header."""
    if request.url.path in DATA_PATHS:
        return PlainTextResponse("sign in first", 401)
    if is_part(request):
        return PlainTextResponse("sign in first", 401, {"hx-redirect": "/sign-in"})
    query = f"?{request.url.query}" if request.url.query else ""
    back = urlencode({"next": local_path(f"{request.url.path}{query}")})
    return RedirectResponse(f"/sign-in?{back}", 303)


async def on_fault(request: Request, error: Exception) -> Response:
    """Say what is wrong, and what to do."""
    status = next(code for kind, code in STATUSES.items() if isinstance(error, kind))
    if status >= 500:  # noqa: PLR2004
        log.warning("page_failed", extra={"page": request.url.path, "error": str(error)})
    return error_page(request, status, type(error).__name__, str(error))


async def on_http_fault(request: Request, error: Exception) -> Response:
    """Answer an unknown address or method as a page."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    return error_page(request, status, "HTTPException", "")


def error_page(request: Request, status: int, kind: str, detail: str) -> Response:
    """Return a page that names the fault in the reader's language."""
    words = words_of(request)
    known = words.known.get(f"error.{kind}") or words("error.other")
    return page(request, "error.html", status, code=status, told=known, detail=detail)


class Guard:
    """Adds the headers, refuses forms of other sites, counts."""

    def __init__(self, app: ASGIApp, desk: Desk) -> None:
        self._app = app
        self._origin = desk.settings.origin
        https = HTTPS_HEADERS if desk.settings.is_https else {}
        self._headers = HEADERS | https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, and its answer out."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self._dress(scope, message)
            await send(message)

        headers = Headers(scope=scope)
        if scope["method"] not in SAFE_METHODS and not is_own_page(headers, self._origin):
            refused = PlainTextResponse("the form was sent by another site", 403)
            await refused(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def _dress(self, scope: Scope, message: MutableMapping[str, Any]) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in self._headers.items():
            headers[name] = value
        is_static = scope["path"].startswith("/static/")
        headers["cache-control"] = "public, max-age=86400" if is_static else "no-store"
        route = scope.get("route")
        named = getattr(route, "path", "static" if is_static else "unknown")
        PAGES.labels(route=named, status=str(message["status"])).inc()
