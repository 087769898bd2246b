"""The timeline: the last hours as a page, what happens now as a stream."""

from collections.abc import AsyncGenerator
from datetime import datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gatemesh_console.desk import SESSION_COOKIE, desk_of, fragment, page, session_of, wanted
from gatemesh_console.errors import BadInputError
from gatemesh_console.metrics import STREAMS
from gatemesh_console.paging import read_key
from gatemesh_console.store import EVENT_KEY

SHOWN = 100
SPAN = timedelta(hours=24)
PATIENCE_S = 5.0
RETRY_MS = 2000
YEARS = range(2000, 9000)
"""No event lies outside, and a day or a zone more is still a moment."""


async def timeline_page(request: Request) -> Response:
    """Show the latest events, and older ones by their moment."""
    session_of(request)
    desk, until = desk_of(request), read_moment(wanted(request, "before"))
    after = read_key(request.query_params.get("after", ""), EVENT_KEY)
    # The last row shown lies in the span, however old it is.
    end = (read_moment(after[0]) if after else until) or desk.clock()
    found = await desk.store.timeline(end - SPAN, until, after, SHOWN)
    return page(
        request,
        "timeline.html",
        events=found.rows,
        after=found.after,
        end=end,
        before=end - SPAN,
        live=until is None and after is None,
    )


async def timeline_stream(request: Request) -> Response:
    """Send every new event as it is seen, until the session or the page ends."""
    session_of(request)
    desk = desk_of(request)
    if desk.feed.watchers >= desk.settings.most_streams:
        return Response("too many live timelines are open; close one", 503)
    last_seen = read_number(request.headers.get("last-event-id", ""))
    return StreamingResponse(
        stream(request, last_seen),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def stream(request: Request, last_seen: int | None) -> AsyncGenerator[str]:
    """Give the lines of the stream; a comment now and then shows that it lives."""
    desk, secret = desk_of(request), request.cookies.get(SESSION_COOKIE, "")
    # Only now: of a browser that left before its first line, nobody would forget the watcher.
    watcher = desk.feed.join(last_seen)
    STREAMS.inc()
    try:
        yield f"retry: {RETRY_MS}\n\n"
        while not watcher.is_over and desk.sessions.peek(secret) is not None:
            event = await watcher.next(PATIENCE_S)
            if event is None:
                yield ": alive\n\n"
                continue
            # The page has the newest on top, and adds each part above the one before.
            if event.is_after_gap:
                yield f"event: row\n{as_data(fragment(request, 'gap.html'))}\n"
            html = fragment(request, "event.html", event=event.row)
            yield f"id: {event.number}\nevent: row\n{as_data(html)}\n"
        # Whoever is no longer signed in must not come again and again.
        if desk.sessions.peek(secret) is None:
            yield "event: end\ndata: signed out\n\n"
    finally:
        desk.feed.leave(watcher)
        STREAMS.dec()


def as_data(text: str) -> str:
    """Return a text as lines of one event."""
    return "".join(f"data: {line}\n" for line in text.splitlines())


def read_moment(text: str | None) -> datetime | None:
    """Return the moment that an address names.

    Raises:
        BadInputError: it is none, or has no time zone.
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or found.year not in YEARS:
        raise BadInputError("before", "must be a moment such as 2026-01-01T12:00:00Z")
    return found


def read_number(text: str) -> int | None:
    """Return the number of the last event that a browser has seen; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None  # noqa: PLR2004
