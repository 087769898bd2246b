"""Every answer is guarded, every fault is a page, and files of others are what they claim."""

import hashlib
import re
from pathlib import Path

import pytest

from gatemesh_console import application
from gatemesh_console.guarding import HEADERS

from .conftest import Office, make_office

VENDOR = Path(application.__file__).parent / "static" / "vendor"


@pytest.mark.parametrize("path", ["/", "/nowhere", "/static/console.js", "/sign-in", "/policy"])
async def test_every_answer_has_the_headers(office: Office, path: str) -> None:
    """Faults and files, too."""
    answer = await office.client.get(path)
    for name, value in HEADERS.items():
        assert answer.header(name) == value
    assert answer.header("cache-control") == (
        "public, max-age=86400" if path.startswith("/static") else "no-store"
    )


async def test_a_database_that_is_away_is_told(office: Office) -> None:
    """With the site's own page, which needs no database."""
    office.store.is_away = True
    answer = await office.client.get("/")
    assert answer.status == 503
    assert "The database does not answer" in answer.text


@pytest.mark.parametrize(("path", "status"), [("/gates.json", 401), ("/timeline/stream", 401)])
async def test_a_program_is_told_to_sign_in(path: str, status: int) -> None:
    """A redirect would give it a page that it cannot read."""
    assert (await make_office().client.get(path)).status == status


async def test_a_script_of_a_page_leads_the_browser_to_the_sign_in() -> None:
    """The page would otherwise show the form in its middle."""
    answer = await make_office().client.get("/", **{"hx-request": "true"})
    assert (answer.status, answer.header("hx-redirect")) == (401, "/sign-in")


async def test_another_site_s_form_is_refused_before_anything_is_read() -> None:
    """The sign-in, too: nobody is signed in as somebody else unawares."""
    office = make_office()
    answer = await office.client.post("/sign-in", {"token": "x"}, origin="http://evil.test")
    assert answer.status == 403
    assert "another site" in answer.text


async def test_a_method_that_is_none_is_refused(office: Office) -> None:
    """Pages are read."""
    assert (await office.client.post("/policy", {})).status == 405


def test_files_of_others_are_what_the_table_says() -> None:
    """Whoever changes one must change the table, and be seen."""
    rows = re.findall(
        r"^\| `([^`]+)` \|.*\| ([0-9a-f]{64}) \|$", (VENDOR / "README.md").read_text(), re.M
    )
    told = dict(rows)
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.suffix in (".js", ".css")
    }
    assert told == found
