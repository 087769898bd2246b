"""Pages by key: a page begins after the last row of the one before, however many there are."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gatemesh_console.errors import BadInputError

Row = dict[str, Any]
"""One row of a view by column."""
Key = tuple[str, ...]
MOST_KEY_CHARS = 2000


@dataclass(frozen=True)
class Page:
    """Some rows, and where the next ones begin."""

    rows: list[Row]
    after: str | None
    """None when these were the last."""


def cut(rows: Sequence[Row], limit: int, columns: Sequence[str]) -> Page:
    """Return at most `limit` rows of a query that asked for one more."""
    shown = list(rows[:limit])
    more = len(rows) > limit
    return Page(shown, write_key(shown[-1], columns) if more else None)


def write_key(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    """Return the key of a row as it stands in an address."""
    words = [_word(row[name]) for name in columns]
    return base64.urlsafe_b64encode(json.dumps(words).encode()).decode().rstrip("=")


def read_key(text: str, columns: Sequence[str]) -> Key | None:
    """Return the key that an address holds; None for the first page.

    Raises:
        BadInputError: it is none.
    """
    if not text:
        return None
    try:
        padded = text[:MOST_KEY_CHARS] + "=" * (-len(text) % 4)
        words = json.loads(base64.urlsafe_b64decode(padded))
    except (ValueError, RecursionError):
        words = None
    if (
        not isinstance(words, list)
        or len(words) != len(columns)
        or not all(isinstance(word, str) and "\x00" not in word for word in words)
    ):
        raise BadInputError("after", "is no place in this list; begin with the first page")
    return tuple(words)


def _word(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
