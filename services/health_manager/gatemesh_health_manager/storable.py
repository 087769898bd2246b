"""JSON as the database holds it."""

import math
import re
from collections.abc import Mapping
from typing import Any

Row = dict[str, Any]
"""The values of one row by column, or a JSON object."""
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(value: Any) -> Any:
    """Return JSON that Postgres can hold: without U+0000, lone surrogates, NaN and infinity."""
    if isinstance(value, str):
        return UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {storable(key): storable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable(inner) for inner in value]
    return value
