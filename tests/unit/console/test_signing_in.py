"""Signing in by token, signing out for good, and choices that last."""

from gatemesh_console import signing_in
from gatemesh_console.signing_in import WRONG_TOKEN_DELAY_S

from .conftest import OPERATOR, Office, make_office


async def test_a_token_opens_a_session(office: Office) -> None:
    """The cookie is out of reach of scripts and of other sites' forms."""
    answer = await office.client.sign_in(OPERATOR)
    cookie = answer.header("set-cookie").lower()
    assert answer.status == 303
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert OPERATOR not in cookie
    assert "ann" in (await office.client.get("/")).text


async def test_cookies_need_https_where_there_is_https() -> None:
    """The proxy's address says so."""
    office = make_office(origin="https://mesh.test")
    answer = await office.client.post("/sign-in", {"token": OPERATOR}, origin="https://mesh.test")
    assert "secure" in answer.header("set-cookie").lower()
    assert answer.header("strict-transport-security")


async def test_a_wrong_token_opens_nothing() -> None:
    """And is not repeated on the page."""
    office = make_office()
    answer = await office.client.sign_in("a-wrong-token")
    assert answer.status == 403
    assert 'role="alert"' in answer.text
    assert "a-wrong-token" not in answer.text
    assert answer.header("set-cookie") == ""
    assert (await office.client.get("/")).status == 303
    assert WRONG_TOKEN_DELAY_S > 0


async def test_a_session_of_before_ends_with_a_new_one(office: Office) -> None:
    """A secret that somebody planted is worth nothing."""
    before = dict(office.client.cookies)
    await office.client.sign_in(OPERATOR)
    office.client.cookies, now = before, office.client.cookies
    assert (await office.client.get("/")).status == 303
    office.client.cookies = now
    assert (await office.client.get("/")).status == 200


async def test_signing_out_takes_the_form_s_key_and_ends_the_session(office: Office) -> None:
    """Another site cannot sign one out; the cookie's secret is dead afterwards."""
    kept = dict(office.client.cookies)
    assert (await office.client.post("/sign-out", {"form_key": "x"})).status == 403
    key = await office.client.form_key()
    assert (await office.client.post("/sign-out", {"form_key": key})).status == 303
    office.client.cookies = kept
    assert (await office.client.get("/")).status == 303


async def test_one_is_led_back_to_where_one_wanted_to_go() -> None:
    """And nowhere else."""
    office = make_office()
    answer = await office.client.get("/incidents?status=open")
    assert answer.header("location") == "/sign-in?next=%2Fincidents%3Fstatus%3Dopen"
    for wish, target in (("/incidents", "/incidents"), ("https://evil.test", "/")):
        answer = await office.client.post("/sign-in", {"token": OPERATOR, "next": wish})
        assert answer.header("location") == target


async def test_choices_are_kept(office: Office) -> None:
    """Without a script; anything else is refused."""
    answer = await office.client.post("/choices", {"theme": "dark", "next": "/policy"})
    assert (answer.status, answer.header("location")) == (303, "/policy")
    await office.client.post("/choices", {"language": "zh"})
    text = (await office.client.get("/")).text
    assert 'data-theme="dark"' in text
    assert "实例总览" in text
    assert (await office.client.post("/choices", {"theme": "pink"})).status == 400
    assert signing_in.choose.__doc__
