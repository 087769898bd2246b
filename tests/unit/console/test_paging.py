"""Pages follow each other by key."""

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_console.errors import BadInputError
from gatemesh_console.paging import cut, read_key, write_key

COLUMNS = ("pool", "instance_id")
TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=50)


@given(TEXTS, TEXTS)
def test_a_key_is_read_back(pool: str, name: str) -> None:
    """Whatever an instance is called."""
    key = write_key({"pool": pool, "instance_id": name}, COLUMNS)
    assert read_key(key, COLUMNS) == (pool, name)


def test_a_moment_is_written_whole() -> None:
    """Microseconds tell rows apart."""
    at = datetime(2026, 1, 1, 0, 0, 0, 7, UTC)
    assert read_key(write_key({"at": at}, ("at",)), ("at",)) == (at.isoformat(),)


@given(st.text(min_size=1))
def test_anything_else_is_refused(text: str) -> None:
    """An address that people changed names no page, and raises nothing else."""
    try:
        found = read_key(text, COLUMNS)
    except BadInputError:
        return
    assert found is not None
    assert len(found) == len(COLUMNS)


def test_a_deep_nest_is_refused() -> None:
    """As anything else that is no key."""
    with pytest.raises(BadInputError, match="after"):
        read_key(base64.urlsafe_b64encode(b"[" * 1400).decode(), COLUMNS)


def test_the_first_page_has_no_key() -> None:
    """It begins at the beginning."""
    assert read_key("", COLUMNS) is None


@pytest.mark.parametrize(("count", "shown", "more"), [(2, 2, False), (3, 2, True), (0, 0, False)])
def test_one_row_more_means_one_page_more(count: int, shown: int, more: bool) -> None:  # noqa: FBT001 (a table)
    """The row that was asked for too many is not shown."""
    rows = [{"pool": "p", "instance_id": f"e{n}"} for n in range(count)]
    page = cut(rows, 2, COLUMNS)
    assert len(page.rows) == shown
    assert (page.after is not None) is more
    if page.after:
        assert read_key(page.after, COLUMNS) == ("p", "e1")
