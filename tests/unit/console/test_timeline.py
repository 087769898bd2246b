"""The timeline as a page and as a stream."""

import pytest

from gatemesh_console.errors import BadInputError
from gatemesh_console.timeline import SHOWN, as_data, read_moment, read_number

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
    office.store.tables["timeline_v1"] = [dict(EVENT)] * (SHOWN + 1)
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


async def test_a_stream_ends_with_its_watcher_and_tells_the_rest_first() -> None:
    """Lines are escaped rows, in the reader's language."""
    office = make_office()
    await office.client.sign_in("token-of-bob")
    office.desk.feed.take([EVENT, EVENT | {"what": "second"}])
    watcher = office.desk.feed.join(0)
    while (await watcher.next(0)) is not None:
        pass
    assert (await office.client.get("/timeline/stream", cookie="x")).status == 401


@pytest.mark.parametrize("text", ["yesterday", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z"])
def test_a_moment_has_a_zone(text: str) -> None:
    """Or it is refused."""
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
