"""Who asks, in which language, with which rights."""

import pytest
from starlette.applications import Starlette
from starlette.requests import Request

from gatemesh_console.desk import desk_of, is_part, theme_of, wanted, words_of
from gatemesh_console.sessions import Sessions

from .conftest import VIEWER, Office, make_office


def request(office: Office, query: str = "", **headers: str) -> Request:
    """Return a request as pages see it."""
    return Request(
        {
            "type": "http",
            "method": "GET",
            "path": "/",
            "query_string": query.encode(),
            "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
            "app": office.client.application,
        }
    )


def test_the_desk_is_found(office: Office) -> None:
    """And an application without one is a fault of ours."""
    assert desk_of(request(office)) is office.desk
    bare = Request({"type": "http", "app": Starlette()})
    bare.app.state.desk = None
    with pytest.raises(TypeError):
        desk_of(bare)


def test_colours_and_language_are_chosen_by_cookie(office: Office) -> None:
    """A value that is none of ours is left aside."""
    chosen = request(office, cookie="gatemesh_theme=dark; gatemesh_language=zh")
    assert (theme_of(chosen), words_of(chosen).language) == ("dark", "zh")
    odd = request(office, cookie="gatemesh_theme=x; gatemesh_language=y")
    assert (theme_of(odd), words_of(odd).language) == ("auto", "en")


def test_a_filter_is_short_and_clean(office: Office) -> None:
    """The database takes no zero byte."""
    asked = request(office, f"pool=a%00b&long={'x' * 300}&empty=", **{"hx-request": "true"})
    assert wanted(asked, "pool") == "ab"
    assert len(wanted(asked, "long") or "") == 200
    assert wanted(asked, "empty") is None
    assert wanted(asked, "none") is None
    assert is_part(asked)


async def test_a_page_that_is_left_open_keeps_nobody_signed_in() -> None:
    """What it asks by itself is no use; a click is."""
    now_s = 0.0
    office = make_office()
    sessions = Sessions(lambda: now_s, 3600, 600)
    object.__setattr__(office.desk, "sessions", sessions)
    await office.client.sign_in(VIEWER)
    now_s = 500.0
    assert (await office.client.get("/", **{"hx-request": "true"})).status == 200
    assert (await office.client.get("/gates.json")).status == 200
    now_s = 600.0
    assert (await office.client.get("/")).status == 303
    await office.store.close()


async def test_a_viewer_is_told_that_he_may_not_act(office: Office) -> None:
    """By form, and by hand."""
    await office.client.sign_in(VIEWER)
    assert (await office.client.get("/actions?action=pause")).status == 403
    key = await office.client.form_key()
    form = {"form_key": key, "action": "pause", "pool": "chat", "step": "send"}
    assert (await office.client.post("/actions", form)).status == 403
    assert office.published == []
