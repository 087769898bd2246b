"""The timeline as a page and as a stream."""

import pytest
from starlette.requests import Request

from gatemesh_console.desk import SESSION_COOKIE
from gatemesh_console.errors import BadInputError
from gatemesh_console.timeline import SHOWN, as_data, read_moment, read_number, stream

from .conftest import EVENT, HOSTILE, NOW, Office, make_office


async def test_the_page_shows_what_happened(office: Office) -> None:
    """The present page is live; an older one is not."""
    text = (await office.client.get("/timeline")).text
    assert 'data-source="/timeline/stream"' in text
    assert HOSTILE not in text
    assert 'href="/incidents/i-1"' in text
    older = (await office.client.get("/timeline?before=2026-01-01T00:00:00Z")).text
    assert "data-source" not in older


async def test_older_events_are_a_page_away(office: Office) -> None:
    """After the last row shown; where there are no more, the day before."""
    assert "before=2025-12-31T12%3A00%3A00%2B00%3A00" in (await office.client.get("/timeline")).text
    office.store.tables["arrivals_v1"] = [dict(EVENT)] * (SHOWN + 1)
    text = (await office.client.get("/timeline")).text
    assert text.count("&lt;script&gt;") == 2 * SHOWN
    older = text.partition('rel="next" href="')[2].partition('"')[0]
    assert older.startswith("/timeline?after=")
    await office.client.get(older)
    _, values = office.store.asked[-1]
    assert (values["after_0"], values["after_1"]) == (NOW.isoformat(), EVENT["instance_id"])


async def test_streams_are_limited() -> None:
    """Each holds a connection."""
    office = make_office(most_streams=1)
    await office.client.sign_in("token-of-bob")
    office.desk.feed.join(None)
    assert (await office.client.get("/timeline/stream")).status == 503


def asking(office: Office) -> Request:
    """Return what a signed-in browser asks with."""
    jar = "; ".join(f"{name}={value}" for name, value in office.client.cookies.items())
    return Request(
        {
            "type": "http",
            "app": office.client.application,
            "method": "GET",
            "path": "/timeline/stream",
            "query_string": b"",
            "headers": [(b"host", b"mesh.test"), (b"cookie", jar.encode())],
        }
    )


async def test_a_stream_tells_what_was_missed_and_what_comes(office: Office) -> None:
    """Lines are escaped rows with their number; who leaves is forgotten."""
    feed = office.desk.feed
    feed.take([EVENT, EVENT | {"what": "second"}])
    lines = stream(asking(office), 1)
    assert (await anext(lines)).startswith("retry: ")
    missed = await anext(lines)
    assert missed.startswith("id: 2\nevent: row\ndata: <tr data-at=")
    assert "second" in missed
    assert HOSTILE not in missed
    feed.take([EVENT | {"what": "third"}])
    assert "third" in await anext(lines)
    assert feed.watchers == 1
    await lines.aclose()
    assert feed.watchers == 0


async def test_a_stream_says_where_events_were_left_out(office: Office) -> None:
    """Nobody takes a part for all."""
    office.desk.feed.take([EVENT | {"what": "later"}], is_cut=True)
    lines = stream(asking(office), 0)
    await anext(lines)
    assert "left out here" in await anext(lines)
    assert "later" in await anext(lines)
    await lines.aclose()


async def test_a_stream_that_nobody_began_to_read_holds_no_place(office: Office) -> None:
    """A browser may leave before the first line."""
    lines = stream(asking(office), None)
    assert office.desk.feed.watchers == 0
    await lines.aclose()


async def test_a_stream_ends_with_its_session(office: Office) -> None:
    """Its page is told so, and does not come again and again."""
    lines = stream(asking(office), None)
    await anext(lines)
    office.desk.sessions.end(office.client.cookies[SESSION_COOKIE])
    assert await anext(lines) == "event: end\ndata: signed out\n\n"
    assert [line async for line in lines] == []


async def test_a_stream_is_for_the_signed_in() -> None:
    """As every page."""
    assert (await make_office().client.get("/timeline/stream")).status == 401


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00Z"]
)
def test_a_moment_has_a_zone(text: str) -> None:
    """Or it is refused, as is one before all time."""
    with pytest.raises(BadInputError, match="before"):
        read_moment(text)


def test_a_moment_is_read() -> None:
    """As the page writes it."""
    assert read_moment("2026-01-01T12:00:00+00:00") == NOW
    assert read_moment(None) is None


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), ("", None), ("-1", None), ("x", None), ("9" * 20, None)]
)
def test_the_last_event_is_a_number(text: str, number: int | None) -> None:
    """Anything else means a newcomer."""
    assert read_number(text) == number


def test_lines_cannot_break_out_of_an_event() -> None:
    """Each line of the text is a line of data."""
    assert as_data("a\nevent: end\r\nb") == "data: a\ndata: event: end\ndata: b\n"
