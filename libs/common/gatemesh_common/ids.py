"""Identifiers: fresh ones, derived ones, and how they stand in routing keys."""

from uuid import NAMESPACE_OID, uuid4, uuid5


def new_message_id() -> str:
    """Return a fresh message id."""
    return str(uuid4())


def derived_id(*parts: str) -> str:
    """Return the same id for the same parts, so that a repeated step repeats its message."""
    return str(uuid5(NAMESPACE_OID, "\x1f".join(parts)))


def key_segment(text: str) -> str:
    """Make one routing-key word of any identifier: dots and wildcards separate words there."""
    return "".join("_" if sign in ".*# " else sign for sign in text)[:80] or "_"
