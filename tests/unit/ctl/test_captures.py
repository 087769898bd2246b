"""Which captures are shown, and who sees their text."""

from typing import Any, cast

import pytest

from gatemesh_ctl import store as views
from gatemesh_ctl.captures import NO_TEXT, found, texts_of
from gatemesh_ctl.errors import CtlError, UnreachableError
from gatemesh_ctl.store import Row, Store

ROWS = [
    {"capture_id": f"{begin}-1", "has_text": begin == "ab", "received_at": 0, "instance_id": "e"}
    for begin in ("ab", "ac", "b")
]


class Views:
    """Stands for the database."""

    def __init__(self, error: CtlError | None = None) -> None:
        self.error = error
        self.asked: list[tuple[str, int, dict[str, object]]] = []

    def newest(self, view: str, limit: int, **equals: object) -> list[Row]:
        """Return what is asked for."""
        self.asked.append((view, limit, equals))
        if view == views.CAPTURE_TEXTS:
            if self.error is not None:
                raise self.error
            return [{"tokens": ["Hi"]}]
        wanted = {name: value for name, value in equals.items() if name == "capture_id"}
        return [row for row in ROWS if wanted.items() <= row.items()]

    def incident(self, incident_id: str) -> Row:
        """Return an incident by the beginning of its id."""
        return {"incident_id": f"{incident_id}-whole", "instance_id": "engine-0"}


def ask(views_: Views, *given: Any) -> list[Row]:
    """Return what is found."""
    return found(cast(Store, views_), *given, limit=5)


def test_one_is_found_by_the_beginning_of_its_id() -> None:
    """If that is no other one's."""
    assert ask(Views(), "ab", None, None) == ROWS[:1]
    assert ask(Views(), "ac-1", None, None) == ROWS[1:2]
    for begin, why in (("a", "more than one"), ("x", "there is no capture")):
        with pytest.raises(CtlError, match=why):
            ask(Views(), begin, None, None)


def test_those_of_an_incident_are_asked_for_by_its_instance() -> None:
    """So that an index serves."""
    asked = Views()
    ask(asked, None, "i", None)
    assert asked.asked == [
        (views.CAPTURES, 5, {"instance_id": "engine-0", "incident_id": "i-whole"})
    ]


def test_text_is_shown_to_those_who_may() -> None:
    """Others see the figures and learn which role it takes."""
    assert texts_of(cast(Store, Views()), ROWS[0]) == ({"tokens": ["Hi"]}, "")
    assert texts_of(cast(Store, Views()), ROWS[1]) == (None, "")
    refused = Views(CtlError("no", "ask"))
    assert texts_of(cast(Store, refused), ROWS[0]) == (None, NO_TEXT)
    with pytest.raises(UnreachableError):
        texts_of(cast(Store, Views(UnreachableError("away", "wait"))), ROWS[0])
