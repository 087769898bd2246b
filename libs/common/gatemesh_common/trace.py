"""W3C trace context: what of it travels with messages, and one for what has none. Pure."""

import hashlib
import re

FORM = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
"""Version, trace, span, flags; a later version may add more, which is left out."""
LENGTH = 55
LONGEST = 200


def usable(traceparent: str | None) -> str | None:
    """Return a trace context as far as we carry it; None when it is none."""
    if traceparent is None or len(traceparent) > LONGEST:
        return None
    head, rest = traceparent[:LENGTH], traceparent[LENGTH:]
    if not FORM.fullmatch(head) or (rest and (head.startswith("00") or rest[0] != "-")):
        return None
    return head


def derived(*names: str) -> str:
    """Return the trace context of something that came without one; the same for the same names.

    So that all that is told of one request belongs together, and costs nothing where nothing is.
    """
    digest = hashlib.sha256("\x1f".join(names).encode("utf-8", "surrogatepass")).hexdigest()
    # A zero is no id; one of a hash is as unlikely as any other.
    return f"00-{digest[:32]}-{digest[32:48]}-01"


def trace_id_of(traceparent: str | None) -> str | None:
    """Return the trace of a context, by which logs and traces are joined."""
    found = usable(traceparent)
    return found.split("-")[1] if found else None
