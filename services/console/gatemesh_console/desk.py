"""What every page works with, and how it answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse

from gatemesh_common.clock import utc_now
from gatemesh_common.messages import ActionRequest
from gatemesh_console import words
from gatemesh_console.errors import ForbiddenError, NotSignedInError
from gatemesh_console.fresh import Fresh
from gatemesh_console.live import Feed
from gatemesh_console.rendering import make_environment, render
from gatemesh_console.scores import Scores
from gatemesh_console.sessions import Session, Sessions
from gatemesh_console.settings import ConsoleSettings
from gatemesh_console.store import Store
from gatemesh_console.tokens import Tokens

Publish = Callable[[ActionRequest], Awaitable[None]]
RATE_MIN, CHART_MIN, BIN_MIN = 10, 60, 1
"""Minutes: of the gates' rates, of the chart, and of one of its points."""
KEPT_S = 10.0
DATA_PATHS = ("/gates.json", "/timeline/stream")
"""What scripts ask for, and no person."""
THEMES = ("auto", "light", "dark")
SESSION_COOKIE = "gatemesh_session"
THEME_COOKIE = "gatemesh_theme"
LANGUAGE_COOKIE = "gatemesh_language"


@dataclass(frozen=True)
class Desk:
    """Made once by the composition root."""

    settings: ConsoleSettings
    store: Store
    tokens: Tokens
    sessions: Sessions
    publish: Publish
    feed: Feed
    scores: Scores = field(default_factory=Scores)
    clock: Callable[[], datetime] = utc_now
    templates: Environment = field(default_factory=make_environment)
    gates: Fresh = field(init=False)
    """What the gates counted lately."""
    failures: Fresh = field(init=False)
    """Failures by minute."""
    version: str = field(default_factory=lambda: uuid4().hex[:8])
    """Changes with each start, so that browsers fetch scripts and styles anew."""

    def __post_init__(self) -> None:
        store = self.store
        # Frozen: set once, here.
        for name, ask in (
            ("gates", lambda: store.gates(RATE_MIN)),
            ("failures", lambda: store.failures(CHART_MIN, BIN_MIN)),
        ):
            object.__setattr__(self, name, Fresh(ask, KEPT_S))


def desk_of(request: Request) -> Desk:
    """Return what the pages of this application work with."""
    desk = request.app.state.desk
    if not isinstance(desk, Desk):
        raise TypeError("the application was made without a desk")
    return desk


def session_of(request: Request) -> Session:
    """Return the session of whoever asks.

    Raises:
        NotSignedInError: nobody is signed in.
    """
    sessions, secret = desk_of(request).sessions, request.cookies.get(SESSION_COOKIE, "")
    # A page that is left open refreshes itself, and that is no use of it.
    session = sessions.peek(secret) if is_automatic(request) else sessions.find(secret)
    if session is None:
        raise NotSignedInError("sign in")
    return session


def require_operator(request: Request) -> Session:
    """Return the session of one who may ask for actions.

    Raises:
        NotSignedInError, ForbiddenError
    """
    session = session_of(request)
    if not session.person.may_act:
        raise ForbiddenError(f"{session.person.name} may look, and not act: role viewer")
    return session


def require_own_form(session: Session, form: dict[str, str]) -> None:
    """Raise ForbiddenError when a form did not come from a page of this session."""
    if not session.owns(form.get("form_key", "")):
        raise ForbiddenError("the form is not of this session; go back and reload the page")


def words_of(request: Request) -> words.Words:
    """Return the words of the language that this browser is answered in."""
    chosen = request.cookies.get(LANGUAGE_COOKIE)
    return words.load(words.choose(chosen, request.headers.get("accept-language", "")))


def theme_of(request: Request) -> str:
    """Return the chosen colours."""
    chosen = request.cookies.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else "auto"


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Answer with a page in the language and colours of whoever asks."""
    return HTMLResponse(fragment(request, template, **values), status)


def fragment(request: Request, template: str, **values: Any) -> str:
    """Return a page, or a part of one, as text."""
    desk = desk_of(request)
    session = desk.sessions.peek(request.cookies.get(SESSION_COOKIE, ""))
    query = f"?{request.url.query}" if request.url.query else ""
    common = {
        "w": words_of(request),
        "theme": theme_of(request),
        "themes": THEMES,
        "languages": words.NAMES,
        "codes": words.CODES,
        "person": session.person if session else None,
        "form_key": session.form_key if session else "",
        "here": f"{request.url.path}{query}",
        "path": request.url.path,
        "version": desk.version,
        "now": desk.clock(),
    }
    return render(desk.templates, template, common | values)


def is_part(request: Request) -> bool:
    """True when a script of ours asks for a part of a page."""
    return request.headers.get("hx-request") == "true"


def is_automatic(request: Request) -> bool:
    """True when a page asks by itself, and nobody has touched it."""
    return is_part(request) or request.url.path in DATA_PATHS


def wanted(request: Request, name: str) -> str | None:
    """Return a filter of the address; None without it."""
    return request.query_params.get(name, "").replace("\x00", "")[:200] or None
