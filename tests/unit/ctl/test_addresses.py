"""Where broker and database are."""

import json
from pathlib import Path

import pytest

from gatemesh_ctl.addresses import find_addresses, shown
from gatemesh_ctl.errors import CtlError

RUN = {"amqp_url": "amqp://run/", "database_url": "postgresql://run/db"}


def write_run(folder: Path, text: str | None = None) -> None:
    """Write a state file as a local stack does."""
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(text or json.dumps(RUN))


def test_the_environment_wins(tmp_path: Path) -> None:
    """Each address on its own."""
    write_run(tmp_path / ".gatemesh")
    found = find_addresses({"GATEMESH_AMQP_URL": "amqp://env/"}, tmp_path)
    assert found.broker() == "amqp://env/"
    assert found.database() == "postgresql://run/db"


def test_a_stack_above_is_found(tmp_path: Path) -> None:
    """Called from somewhere inside of the project."""
    write_run(tmp_path / ".gatemesh")
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert find_addresses({}, deep).broker() == "amqp://run/"


def test_a_named_state_folder_is_the_only_one(tmp_path: Path) -> None:
    """Two stacks on one machine are told apart."""
    write_run(tmp_path / ".gatemesh")
    with pytest.raises(CtlError):
        find_addresses({"GATEMESH_STATE": str(tmp_path / "other")}, tmp_path).broker()


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_damaged_state_file_is_as_none(tmp_path: Path, text: str) -> None:
    """The error is about the address then."""
    write_run(tmp_path / ".gatemesh", text)
    with pytest.raises(CtlError, match="GATEMESH_DATABASE_URL"):
        find_addresses({}, tmp_path).database()


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("amqp://user:secret@host:5672/v", "host:5672"),
        ("postgresql://user:secret@host/db", "host"),
        ("amqp://user:secret@host:port/", "host"),
        ("nonsense", "?"),
    ],
)
def test_a_shown_address_has_no_password(address: str, text: str) -> None:
    """It ends up on screens and in tickets."""
    assert shown(address) == text


def test_a_file_of_authorities_goes_with_the_address(tmp_path: Path) -> None:
    """As with services; and an error says what to correct."""
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text("")
    named = {"GATEMESH_AMQP_CA_FILE": str(ca_file), "GATEMESH_DATABASE_CA_FILE": str(ca_file)}
    given = {"GATEMESH_AMQP_URL": "amqps://h/", "GATEMESH_DATABASE_URL": "postgresql://h/d"}
    found = find_addresses(named | given, tmp_path)
    assert "cafile=" in found.broker()
    assert "sslmode=verify-full" in found.database()
    with pytest.raises(CtlError, match=r"(?s)amqps://.*GATEMESH_AMQP_CA_FILE"):
        find_addresses(named | {"GATEMESH_AMQP_URL": "amqp://h/"}, tmp_path)
