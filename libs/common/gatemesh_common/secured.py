"""Addresses of a broker and a database that are reached encrypted, and must prove who they are."""

from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

VERIFYING = ("verify-full", "verify-ca")
"""What a database's address may say of itself, beside a file of authorities."""


def secured_broker(url: str, ca_file: Path | None) -> str:
    """Return a broker's address that trusts the authorities of a file; as it was without one.

    Raises:
        ValueError: the file is not there, or the address would not use it; says the way out.
    """
    if ca_file is None:
        return url
    check_file(ca_file)
    if not url.startswith("amqps://"):
        raise ValueError("with a CA file the broker's address must begin with amqps://")
    return with_options(url, {"cafile": str(ca_file)})


def secured_database(url: str, ca_file: Path | None) -> str:
    """Return a database's address that is encrypted and proven by a file; as it was without one.

    Raises:
        ValueError: the file is not there, or the address asks for less; says the way out.
    """
    if ca_file is None:
        return url
    check_file(ca_file)
    mode = options_of(url).get("sslmode", VERIFYING[0])
    if mode not in VERIFYING:
        raise ValueError(f"with a CA file leave sslmode={mode} out of the database's address")
    return with_options(url, {"sslmode": mode, "sslrootcert": str(ca_file)})


def check_file(path: Path) -> None:
    """Check that there is such a file.

    Raises:
        ValueError: there is none; a client would take that for a server that is away.
    """
    if not path.is_file():
        raise ValueError(f"there is no CA file {path}; name a PEM file that this service can read")


def options_of(url: str) -> dict[str, str]:
    """Return the options behind an address."""
    return dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))


def with_options(url: str, options: dict[str, str]) -> str:
    """Return an address with options added, or replaced."""
    query = urlencode(options_of(url) | options)
    # Not by `geturl`, which loses the second slash of the virtual host "/".
    return f"{url.partition('?')[0]}?{query}"
