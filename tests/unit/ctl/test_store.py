"""Reading the views; the reading itself is tested on a real database."""

import pytest
from sqlalchemy.exc import ProgrammingError

from gatemesh_ctl.errors import CtlError
from gatemesh_ctl.store import ORDERS, Store, driver_url, explained, open_engine


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_usual_addresses_are_taken(scheme: str) -> None:
    """Whatever people are used to write."""
    assert driver_url(f"{scheme}://u:p@h/d") == "postgresql+psycopg://u:p@h/d"


@pytest.mark.parametrize("url", ["mysql://h/d", "host=h", "", "postgresql+asyncpg://h/d"])
def test_other_addresses_are_refused(url: str) -> None:
    """With the form that is wanted."""
    with pytest.raises(CtlError, match="postgresql://user"):
        driver_url(url)


def test_an_unreadable_address_never_shows_its_password() -> None:
    """The error goes to a screen."""
    with pytest.raises(CtlError) as caught:
        open_engine("postgresql://u:secret@h:port/d")
    assert "secret" not in str(caught.value)


class Refused(Exception):  # noqa: N818 (it plays the driver's part)
    """A driver's error with its code."""

    def __init__(self, code: str) -> None:
        super().__init__("it says so\nLINE 1: SELECT")
        self.sqlstate = code


@pytest.mark.parametrize(
    ("code", "way_out"), [("42P01", "migrate"), ("42501", "gatemesh_reader"), ("42703", "bug")]
)
def test_a_refused_query_has_a_way_out(code: str, way_out: str) -> None:
    """Each cause its own."""
    error = explained(ProgrammingError("SELECT", {}, Refused(code)))
    assert way_out in error.way_out
    assert "it says so" in error.wrong
    assert "LINE" not in error.wrong


def test_every_view_has_a_version_and_an_order() -> None:
    """Operators' scripts survive an upgrade, and the newest rows are well defined."""
    assert all(name.endswith("_v1") for name in ORDERS)
    assert all(ORDERS.values())


def test_opening_a_store_reads_nothing() -> None:
    """An unreachable database is told when it is asked."""
    with Store("postgresql://u:p@127.0.0.1:1/d") as store:
        assert store is not None
