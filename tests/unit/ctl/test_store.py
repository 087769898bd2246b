"""Reading the views; the reading itself is tested on a real database."""

import psycopg
import pytest
from psycopg import errors

from gatemesh_ctl.errors import CtlError
from gatemesh_ctl.store import INCIDENTS, ORDERS, Store, checked_url, explained, selection


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_usual_addresses_are_taken(scheme: str) -> None:
    """Whatever people are used to write."""
    assert checked_url(f"{scheme}://u:p@h/d") == "postgresql://u:p@h/d"


@pytest.mark.parametrize(
    "url",
    ["mysql://h/d", "host=h", "", "postgresql+asyncpg://h/d", "postgresql://u:p@h:port/d"],
)
def test_other_addresses_are_refused(url: str) -> None:
    """With the form that is wanted."""
    with pytest.raises(CtlError, match="postgresql://user"):
        checked_url(url)


@pytest.mark.parametrize(
    "url", ["postgresql://u:secret@h:port/d", "postgresql://u:secret@h/d?secret=1"]
)
def test_an_unreadable_address_never_shows_its_password(url: str) -> None:
    """The error goes to a screen."""
    with pytest.raises(CtlError) as caught:
        Store(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "way_out"),
    [
        (errors.UndefinedTable, "migrate"),
        (errors.InsufficientPrivilege, "gatemesh_reader"),
        (errors.UndefinedColumn, "bug"),
    ],
)
def test_a_refused_query_has_a_way_out(kind: type[psycopg.Error], way_out: str) -> None:
    """Each cause its own."""
    error = explained(kind("it says so\nLINE 1: SELECT"))
    assert way_out in error.way_out
    assert "it says so" in error.wrong
    assert "LINE" not in error.wrong


def test_a_query_names_what_it_asks_for() -> None:
    """Values travel apart from the text."""
    query = selection(INCIDENTS, ["pool"], descending=True, limit=3).as_string()
    assert query == (
        'SELECT * FROM "incidents_v1" WHERE "pool" = %(pool)s ORDER BY "opened_at" DESC LIMIT 3'
    )


def test_every_view_has_a_version_and_an_order() -> None:
    """Operators' scripts survive an upgrade, and the newest rows are well defined."""
    assert all(name.endswith("_v1") for name in ORDERS)
    assert all(ORDERS.values())


def test_opening_a_store_reads_nothing() -> None:
    """An unreachable database is told when it is asked."""
    with Store("postgresql://u:p@127.0.0.1:1/d") as store:
        assert store is not None
