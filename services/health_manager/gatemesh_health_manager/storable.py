"""JSON as the database holds it."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]
"""The values of one row by column, or a JSON object."""
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Made once: `json.dumps` makes one for each call that asks for more than the defaults.
WITHOUT_NAN = json.JSONEncoder(allow_nan=False)


def storable(value: Any) -> Any:
    """Return JSON that Postgres can hold: without U+0000, lone surrogates, NaN and infinity."""
    if isinstance(value, str):
        is_plain = value.isascii() and "\x00" not in value
        return value if is_plain else UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {storable(key): storable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable(inner) for inner in value]
    return value


def storable_text(value: Any) -> str:
    """Return the text of JSON that Postgres can hold."""
    try:
        text = WITHOUT_NAN.encode(value)
    except ValueError:
        return json.dumps(storable(value))
    # Most need no second look: in ASCII, what cannot be stored is always escaped.
    suspect = "\\u0000" in text or "\\ud" in text
    return json.dumps(storable(value)) if suspect else text


def storable_words(words: Sequence[str | None]) -> Sequence[str | None]:
    """Return words that Postgres can hold."""
    together = "".join(filter(None, words))
    if together.isascii() and "\x00" not in together:
        return words
    return [storable(word) for word in words]
