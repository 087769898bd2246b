#!/usr/bin/env python3
"""Exits with 0 when an address answers with the expected status: `healthcheck.py URL [STATUS]`."""

import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

DEADLINE_S = 4.0


def status_of(url: str) -> int:
    """Return the status that an address on this machine answers with; 0 for no answer."""
    address = urlsplit(url)
    connection = HTTPConnection(address.netloc, timeout=DEADLINE_S)
    try:
        connection.request("GET", address.path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


if __name__ == "__main__":
    expected = int(sys.argv[2]) if sys.argv[2:] else 200
    sys.exit(status_of(sys.argv[1]) != expected)
