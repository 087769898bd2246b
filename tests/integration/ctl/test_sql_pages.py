"""`docs/sql.md` and `docs/sql-views.md` against a real database.

`GATEMESH_WRITE_PAGES=1 python -m pytest tests/integration/ctl/test_sql_pages.py` writes the outputs
and the tables of columns anew; what a column means is written by hand.
"""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from gatemesh_mesh import postgres
from gatemesh_mesh.postgres import plain_url

from .night import record_night
from .pages import MISSING, answer, queried, read_catalogue, rewritten, views_of

pytestmark = pytest.mark.integration

DOCS = Path(__file__).resolve().parents[3] / "docs"
QUESTIONS, VIEWS = DOCS / "sql.md", DOCS / "sql-views.md"
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
