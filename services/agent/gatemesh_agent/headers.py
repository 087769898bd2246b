"""Which headers pass a proxy, and the ids that tie a request to its traces. Pure."""

import re
from collections.abc import Mapping
from functools import lru_cache

from multidict import CIMultiDict, CIMultiDictProxy

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)

REQUEST_ID = "X-Request-Id"
INSTANCE = "X-Gatemesh-Instance"
"""Response header that names the instance which answered."""

UNFIT = "X-Gatemesh-Unfit"
"""Response header that names the reason for which every instance's answer was objected to."""
SHADOW = "X-Gatemesh-Shadow"
"""Request header of a client that wants its answer compared: `always`."""

RESCUE = "X-Gatemesh-Rescue"
"""Request header of a client that wants to be told where its answer changed hands: `tell`."""

REQUEST_ID_FORM = re.compile(r"[\x21-\x7e]{1,200}")


def passing(headers: Mapping[str, str] | CIMultiDictProxy[str], *without: str) -> CIMultiDict[str]:
    """Return the end-to-end headers in their order, repeated ones too, but for those named.

    A repeated name is spelled as it was the first time.
    """
    dropped = dropped_by(headers.get("Connection", ""), without)
    kept: CIMultiDict[str] = CIMultiDict()
    spelled: dict[str, str] = {}
    for name, value in headers.items():
        small = name.lower()
        if small not in dropped:
            # aiohttp sends only the last of two that differ in case alone.
            kept.add(spelled.setdefault(small, name), value)
    return kept


@lru_cache(maxsize=256)
def dropped_by(connection: str, without: tuple[str, ...]) -> frozenset[str]:
    """Return the names, in small letters, of headers that do not pass: the same for nearly all."""
    named = {name.strip().lower() for name in connection.split(",")}
    return HOP_BY_HOP | named | {name.lower() for name in without}


def usable_request_id(value: str | None) -> str | None:
    """Return a client's request id if it can be a name elsewhere, else None."""
    return value if value and REQUEST_ID_FORM.fullmatch(value) else None
