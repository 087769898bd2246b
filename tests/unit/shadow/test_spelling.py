"""Tokens that are a matter of spelling."""

import pytest

from gatemesh_shadow.spelling import spelt_otherwise


@pytest.mark.parametrize(
    ("pieces", "favourites", "expected"),
    [
        pytest.param(["a", " cat"], ["a", " dog"], [False, False], id="another-word"),
        pytest.param(
            [".", "\n", "\n", "1", ".", " So", " it"],
            [".", "\n\n", "-", "2", ".", " The", " we"],
            [False, True, True, True, True, False, False],
            id="one-token-for-two",
        ),
        pytest.param(
            [" camps", " for", " all", " of"],
            [" c", " in", " an", " at"],
            [True, True, True, False],
            id="two-tokens-for-one",
        ),
        pytest.param(["\ufffd", "x"], ["\ufffd", "y"], [False, False], id="part-of-a-character"),
        pytest.param(["", ""], ["", ""], [False, False], id="texts-not-told"),
    ],
)
def test_where_it_is_spelling(
    pieces: list[str], favourites: list[str], expected: list[bool]
) -> None:
    """The favourite is what the text goes on with; from there until two tokens after it."""
    assert spelt_otherwise(pieces, favourites) == expected
