"""A server that cannot be used is named with setting, place and way out, without its password."""

from collections.abc import Callable

import pytest
from aio_pika.exceptions import AMQPConnectionError, AMQPError, ProbableAuthenticationError
from aiormq.exceptions import InvalidFrameError

from gatemesh_mesh.errors import MeshError
from gatemesh_mesh.reach import check_database, explain_broker, place_of, prepare_broker

URL = "amqp://user:hidden@broker:5673/mesh"
CLOSED = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (ProbableAuthenticationError("x"), "refuses this user and password"),
        (InvalidFrameError("x"), "virtual host"),
        (AMQPError("no rights"), "no rights"),
        (ConnectionRefusedError("refused"), "cannot be reached (refused)"),
        (AMQPConnectionError("no, hidden"), "cannot be reached (no, ***)"),
        (TimeoutError(), "cannot be reached (TimeoutError)"),
    ],
)
def test_each_refusal_is_told_apart(error: BaseException, meaning: str) -> None:
    """A person learns which part of the address is wrong."""
    explained = explain_broker(URL, error)
    assert "GATEMESH_AMQP_URL" in explained.reason
    assert "broker:5673/mesh" in explained.reason
    assert meaning in explained.reason
    assert "hidden" not in str(explained)


def test_a_place_has_no_password() -> None:
    """Addresses can be shown."""
    assert place_of("postgresql+psycopg://u:hidden@h/db") == "h/db"


@pytest.mark.parametrize("check", [check_database, prepare_broker])
def test_another_kind_of_server_is_refused(check: Callable[[str], None]) -> None:
    """A person who mixes up two settings learns what belongs there."""
    with pytest.raises(MeshError, match="must begin with") as caught:
        check("mysql://u:hidden@h/db")
    assert "hidden" not in str(caught.value)


def test_an_unreachable_broker_is_an_error_at_once() -> None:
    """Nothing is started when the broker that was named is not there."""
    with pytest.raises(MeshError, match="GATEMESH_AMQP_URL"):
        prepare_broker(f"amqp://u:hidden@{CLOSED}/")


def test_an_unreachable_database_is_an_error_at_once() -> None:
    """Nothing is started when the database that was named is not there."""
    with pytest.raises(MeshError, match="GATEMESH_DATABASE_URL") as caught:
        check_database(f"postgresql+psycopg://u:hidden@{CLOSED}/db")
    assert "hidden" not in str(caught.value)
