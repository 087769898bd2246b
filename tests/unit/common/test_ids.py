"""Identifiers: fresh ones, derived ones, and how they stand in routing keys."""

from hypothesis import given
from hypothesis import strategies as st

from gatemesh_common.ids import derived_id, key_segment, new_message_id


@given(st.text())
def test_a_key_word_holds_no_separator(text: str) -> None:
    """An instance id with dots or wildcards cannot reach another's readers."""
    word = key_segment(text)
    assert word
    assert len(word) <= 80
    assert not set(word) & set(".*# ")


@given(st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
def test_derived_ids_follow_their_parts(one: list[str], other: list[str]) -> None:
    """The same parts give the same id, others another."""
    clean = [[part.replace("\x1f", "") for part in parts] for parts in (one, other)]
    assert (derived_id("x", *clean[0]) == derived_id("x", *clean[1])) is (clean[0] == clean[1])


def test_fresh_ids_differ() -> None:
    """Two messages are two messages."""
    assert new_message_id() != new_message_id()
