"""The changelog says each thing once."""

from collections import Counter

from .pages import REPOSITORY

LONG = 60
"""Signs from which two lines are not alike by chance."""


def test_no_line_is_there_twice() -> None:
    """A merge, or a careless command, once wrote one line between all others."""
    lines = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    counts = Counter(line for line in lines if len(line) >= LONG)
    assert [line for line, count in counts.items() if count > 1] == []
