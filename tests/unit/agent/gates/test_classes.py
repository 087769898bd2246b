"""Counting by class gives what the pattern gives, in plain text and in any other."""

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from gatemesh_agent.gates.classes import SignClass

PATTERN = r"[\p{L}\s,.]"
CLASS = SignClass(PATTERN)


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    """The table of plain text is only a faster way."""
    assert CLASS.count(text) == len(regex.findall(PATTERN, text))


@pytest.mark.parametrize("code", range(128))
def test_each_plain_character(code: int) -> None:
    """The table agrees with the pattern about every ASCII character."""
    assert CLASS.count(chr(code)) == len(regex.findall(PATTERN, chr(code)))
