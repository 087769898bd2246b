"""Signing in and out, and the choice of colours and language."""

import asyncio
import logging

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gatemesh_console import words
from gatemesh_console.desk import (
    LANGUAGE_COOKIE,
    SESSION_COOKIE,
    THEME_COOKIE,
    THEMES,
    desk_of,
    page,
    require_own_form,
    session_of,
)
from gatemesh_console.errors import BadInputError
from gatemesh_console.forms import read_form
from gatemesh_console.guarding import local_path
from gatemesh_console.metrics import SIGN_INS

log = logging.getLogger(__name__)
YEAR_S = 31_536_000
WRONG_TOKEN_DELAY_S = 0.5


async def sign_in_page(request: Request) -> Response:
    """Show the form for the token."""
    return page(request, "sign_in.html", wrong=False, next=request.query_params.get("next", "/"))


async def sign_in(request: Request) -> Response:
    """Begin a session for a known token."""
    desk, form = desk_of(request), await read_form(request)
    person = desk.tokens.person(form.get("token", ""))
    target = local_path(form.get("next", "/"))
    SIGN_INS.labels(outcome="refused" if person is None else "accepted").inc()
    if person is None:
        log.warning("sign_in_refused")
        await asyncio.sleep(WRONG_TOKEN_DELAY_S)
        return page(request, "sign_in.html", 403, wrong=True, next=target)
    desk.sessions.end(request.cookies.get(SESSION_COOKIE, ""))
    log.info("signed_in", extra={"person": person.name, "role": person.role})
    answer = RedirectResponse(target, 303)
    secure = desk.settings.is_https
    answer.set_cookie(
        SESSION_COOKIE,
        desk.sessions.begin(person),
        max_age=int(desk.settings.session_h * 3600),
        httponly=True,
        samesite="lax",
        secure=secure,
    )
    return answer


async def sign_out(request: Request) -> Response:
    """End the session, here and in the browser."""
    desk, session = desk_of(request), session_of(request)
    require_own_form(session, await read_form(request))
    desk.sessions.end(request.cookies.get(SESSION_COOKIE, ""))
    log.info("signed_out", extra={"person": session.person.name})
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(SESSION_COOKIE, httponly=True, samesite="lax")
    return answer


async def choose(request: Request) -> Response:
    """Keep a choice of colours or language in the browser."""
    form = await read_form(request)
    answer = RedirectResponse(local_path(form.get("next", "/")), 303)
    known = {"theme": (THEME_COOKIE, THEMES), "language": (LANGUAGE_COOKIE, words.LANGUAGES)}
    for name, (cookie, choices) in known.items():
        if name not in form:
            continue
        if form[name] not in choices:
            raise BadInputError(name, f"must be one of {', '.join(choices)}")
        answer.set_cookie(
            cookie,
            form[name],
            max_age=YEAR_S,
            httponly=True,
            samesite="lax",
            secure=desk_of(request).settings.is_https,
        )
    return answer
