"""The demo reads what operators read."""

import re

import pytest

from gatemesh_mesh import history

QUERIES = {
    name: text
    for name, text in vars(history).items()
    if name.isupper() and isinstance(text, str) and "SELECT" in text
}


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_queries_read_versioned_views_only(name: str) -> None:
    """Tables may change under the views; the demo must not notice."""
    read = re.findall(r"FROM (\w+)", QUERIES[name])
    assert read
    assert all(re.search(r"_v\d+$", view) for view in read)
