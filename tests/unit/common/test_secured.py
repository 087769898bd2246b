"""Addresses of servers that must prove who they are."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gatemesh_common.secured import secured_broker, secured_database


@pytest.fixture
def ca_file(tmp_path: Path) -> Path:
    """Return a file that is there; nobody reads it here."""
    path = tmp_path / "ca of ours.pem"
    path.write_text("-----BEGIN CERTIFICATE-----\n")
    return path


def test_without_a_file_an_address_is_as_it_was() -> None:
    """Encrypted or not is said by the address alone."""
    assert secured_broker("amqps://u:p@h//", None) == "amqps://u:p@h//"
    assert secured_database("postgresql://u:p@h/d", None) == "postgresql://u:p@h/d"


def test_the_broker_s_file_is_an_option_of_its_address(ca_file: Path) -> None:
    """Options that are there stay, and so does the virtual host."""
    url = secured_broker("amqps://u:p%40@h:5671//?heartbeat=10", ca_file)
    assert url.startswith("amqps://u:p%40@h:5671//?heartbeat=10&cafile=")
    assert url.endswith("ca+of+ours.pem")


def test_the_database_is_verified_in_full(ca_file: Path) -> None:
    """Name and authority: a certificate of another machine is none."""
    url = secured_database("postgresql+psycopg://u:p@h/d", ca_file)
    assert url.startswith("postgresql+psycopg://u:p@h/d?sslmode=verify-full&sslrootcert=")
    weaker = secured_database("postgresql://u:p@h/d?sslmode=verify-ca", ca_file)
    assert "sslmode=verify-ca" in weaker


def test_a_file_that_would_not_be_used_is_an_error(ca_file: Path) -> None:
    """Whoever names one wants it checked."""
    with pytest.raises(ValueError, match="amqps://"):
        secured_broker("amqp://u:p@h/", ca_file)
    with pytest.raises(ValueError, match="sslmode=require"):
        secured_database("postgresql://u:p@h/d?sslmode=require", ca_file)


@pytest.mark.parametrize("secure", [secured_broker, secured_database])
def test_a_file_that_is_not_there_is_an_error(
    secure: Callable[[str, Path | None], str], tmp_path: Path
) -> None:
    """The client would try for ever, as if the server were away."""
    with pytest.raises(ValueError, match="there is no CA file"):
        secure("amqps://h/", tmp_path / "none.pem")
