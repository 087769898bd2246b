"""What the pages say of a recorded night, against a real database: SQL, views, explanations.

`GATEMESH_WRITE_PAGES=1 python -m pytest tests/integration/ctl/test_night.py` writes the outputs
and the tables of columns anew; what a column means is written by hand.
"""

import os
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from gatemesh_mesh import postgres
from gatemesh_mesh.postgres import plain_url

from .conftest import CommandLine
from .night import record_night
from .pages import MISSING, answer, queried, read_catalogue, rewritten, views_of

pytestmark = pytest.mark.integration

DOCS = Path(__file__).resolve().parents[3] / "docs"
QUESTIONS, VIEWS, COMMANDS = DOCS / "sql.md", DOCS / "sql-views.md", DOCS / "ctl.md"
EXPLAINED = re.compile(r"```console\n\$ gatemesh-ctl explain (?P<id>\w+)\n.*?```\n", re.DOTALL)
VERSION = "9f2c11d07a3e"
"""Stands on the page for the version of the rules."""
WRITE_VARIABLE = "GATEMESH_WRITE_PAGES"


@pytest.fixture(scope="module")
def night(database_url: str) -> Iterator[str]:
    """Give a database in which it is five past three, after a night with incidents."""
    name = f"test_night_{uuid.uuid4().hex[:12]}"
    postgres.create_database(database_url, name)
    url = urlsplit(database_url)._replace(path=f"/{name}").geturl()
    record_night(url)
    yield url
    postgres.drop_database(database_url, name)


@pytest.mark.parametrize("page", [QUESTIONS, VIEWS], ids=lambda page: page.name)
def test_a_page_shows_what_the_database_answers(night: str, page: Path) -> None:
    """Every query runs as the readers' role, and its output is the one below it."""
    text = page.read_text()
    with psycopg.connect(plain_url(night), autocommit=True) as connection:
        connection.execute("SET timezone TO 'UTC'")
        connection.execute("SET ROLE gatemesh_reader")
        connection.execute("SET default_transaction_read_only TO on")
        fresh = rewritten(text, lambda query: answer(connection, query), read_catalogue(night))
    if os.environ.get(WRITE_VARIABLE):
        page.write_text(fresh)
    assert fresh == page.read_text()
    assert MISSING not in fresh


def test_every_view_is_told_with_its_columns_and_an_example(night: str) -> None:
    """A new view, or a new column, needs a line."""
    catalogue = set(read_catalogue(night))
    assert views_of(VIEWS.read_text()) == catalogue
    unqueried = {view for view in catalogue if view not in queried(VIEWS)}
    assert unqueried == set()


def test_there_are_ten_questions() -> None:
    """Each with its query."""
    text = QUESTIONS.read_text()
    assert [text.count(f"\n## {number}. ") for number in range(1, 11)] == [1] * 10


@pytest.fixture
def greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Show moments in UTC, as the page does."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


async def test_the_repair_is_explained_as_the_page_shows(night: str, greenwich: None) -> None:
    """Which rule, which verdicts, what the brakes said, each step and how long."""
    ctl = CommandLine(GATEMESH_DATABASE_URL=night)
    [row] = (await ctl.call("incidents", "--instance", "engine-0", "--json")).json
    short = row["incident_id"][:8]
    told = await ctl.call("explain", short)
    assert told.code == 0, told.err
    page = COMMANDS.read_text()
    # Whoever adds a rule changes the version, and need not write this page anew for that.
    out = told.out.replace(row["policy_version"], VERSION)
    fresh = f"```console\n$ gatemesh-ctl explain {short}\n{out}```\n"
    if os.environ.get(WRITE_VARIABLE):
        COMMANDS.write_text(EXPLAINED.sub(lambda found: fresh, page))
    assert fresh in COMMANDS.read_text()


async def test_a_held_incident_is_explained_by_its_brake(night: str) -> None:
    """With the numbers that leave no room, for people and for programs."""
    ctl = CommandLine(GATEMESH_DATABASE_URL=night)
    [held] = (await ctl.call("incidents", "--instance", "engine-2", "--json")).json
    text = (await ctl.call("explain", held["incident_id"])).out
    for words in (
        "one hard failure of L3",
        "1 x nan_logits",
        "2 of 3 served before; 1 would be left (at least 1) and 2 out",
        "there was no room",
        "It is held: no command was sent.",
        "Not over: held for",
    ):
        assert words in text
    told = (await ctl.call("explain", held["incident_id"], "--json")).json
    assert told["rule"]["levels"] == ["L3"]
    assert (told["evidence"]["failures"], told["evidence"]["prompts"]) == (1, 1)
    assert told["commands"] == []


async def test_a_request_is_explained_by_who_asked(night: str) -> None:
    """No rule was broken."""
    ctl = CommandLine(GATEMESH_DATABASE_URL=night)
    [asked] = (await ctl.call("incidents", "--instance", "engine-1", "--json")).json
    text = (await ctl.call("explain", asked["incident_id"])).out
    assert "an operator asked for it" in text
    assert "alice@desk, the broker's user alice asked for quarantine, because: driver" in text
