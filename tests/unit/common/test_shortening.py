"""Whatever the text, it fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_common.shortening import GAP, shortened


@given(st.text(), st.integers(min_value=0, max_value=40))
def test_it_fits(text: str, most_bytes: int) -> None:
    """In bytes, and only then is anything left out."""
    found = shortened(text, most_bytes)
    assert len(found.encode()) <= most_bytes
    assert found == text or len(text.encode()) > most_bytes


@pytest.mark.parametrize(
    ("text", "most_bytes", "shown"),
    [("abcdefghij", 10, "abcdefghij"), ("abcdefghijk", 9, f"ab{GAP}jk"), ("abcdefghijk", 6, "")],
)
def test_both_ends_stay(text: str, most_bytes: int, shown: str) -> None:
    """With a mark between them."""
    assert shortened(text, most_bytes) == shown
