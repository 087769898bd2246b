"""Which captures are asked for, and their text where one may read it."""

from gatemesh_ctl import store as views
from gatemesh_ctl.errors import CtlError, UnreachableError
from gatemesh_ctl.store import Row, Store

SEARCHED = 1000
"""Newest captures among which the beginning of an id is looked for."""
NO_TEXT = "its text is for the role gatemesh_evidence only"


def found(
    store: Store,
    capture_id: str | None,
    incident: str | None,
    instance: str | None,
    *,
    limit: int,
) -> list[Row]:
    """Return the captures that are asked for, oldest first.

    Raises:
        CtlError: none, or more than one, has such an id.
    """
    if capture_id is not None:
        return [one_capture(store, capture_id)]
    asked: dict[str, object] = {"instance_id": instance}
    if incident is not None:
        known = store.incident(incident)
        asked = {"instance_id": known["instance_id"], "incident_id": known["incident_id"]}
    return store.newest(views.CAPTURES, limit, **asked)


def one_capture(store: Store, begin: str) -> Row:
    """Return a capture by its id; of the newest ones the beginning of it is enough.

    Raises:
        CtlError: none, or more than one, has such an id.
    """
    rows = store.newest(views.CAPTURES, 1, capture_id=begin) or [
        row for row in store.newest(views.CAPTURES, SEARCHED) if row["capture_id"].startswith(begin)
    ]
    if len(rows) == 1:
        return rows[0]
    wrong = "there is no capture" if not rows else "more than one capture begins with"
    raise CtlError(f"{wrong} {begin!r}", "gatemesh-ctl capture lists them")


def texts_of(store: Store, row: Row) -> tuple[Row | None, str]:
    """Return the texts of a capture, or a note that says why there are none."""
    if not row["has_text"]:
        return None, ""
    try:
        asked = {"capture_id": row["capture_id"], "received_at": row["received_at"]}
        rows = store.newest(views.CAPTURE_TEXTS, 1, **asked)
    except UnreachableError:
        raise
    except CtlError:
        return None, NO_TEXT
    return (rows[0], "") if rows else (None, "")
