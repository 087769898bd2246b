"""Asking a page of a service or an engine, within a deadline."""

import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import TypeVar

DEADLINE_S = 5.0
MOST_BYTES = 4_000_000
AT_ONCE = 32

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Page:
    """What came back; status 0 where nothing did."""

    status: int
    text: str
    date: datetime | None = None
    """What the server's clock said, in whole seconds."""


def fetch(url: str, deadline_s: float = DEADLINE_S) -> Page:
    """Return a page, whatever its status; one of status 0 says why there is none."""
    if not url.startswith(("http://", "https://")):
        return Page(0, "no http address")
    try:
        with urllib.request.urlopen(url, timeout=deadline_s) as answer:  # noqa: S310 (checked above)
            return page_of(answer.status, answer.read(MOST_BYTES), answer.headers.get("Date"))
    except urllib.error.HTTPError as error:
        with error:
            return page_of(error.code, error.read(MOST_BYTES), error.headers.get("Date"))
    except urllib.error.URLError as error:
        return Page(0, str(error.reason))
    except (OSError, HTTPException, ValueError) as error:
        return Page(0, str(error) or type(error).__name__)


def page_of(status: int, body: bytes, date: str | None) -> Page:
    """Return what was answered."""
    try:
        moment = parsedate_to_datetime(date) if date else None
    except ValueError:
        moment = None
    return Page(status, body.decode(errors="replace"), moment)


def side_by_side(function: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """Return what a function makes of each thing, many at once, in their order."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(function, things))
