"""The rules themselves: what counts as a line, as nesting, as a named place."""

from pathlib import Path

import pytest

from gatemesh_mesh import layout

DEEP = '''
def outer(x):
    """Two lines
    of words."""
    if x:
        return 1
    elif x + 1:
        return 2
    else:
        for y in x:
            with y:
                pass
    def inner():
        while True:
            break
'''


def test_docstrings_do_not_count_and_elif_is_no_level() -> None:
    """Explaining is free; alternatives side by side are not depth."""
    outer, inner = layout.function_sizes(DEEP)
    assert (outer.name, outer.body_lines, outer.nesting) == ("outer", 11, 3)
    assert (inner.name, inner.body_lines, inner.nesting) == ("inner", 2, 1)


def test_handlers_and_cases_are_levels() -> None:
    """Every kind of block counts."""
    text = "def f(x):\n try:\n  pass\n except E:\n  match x:\n   case 1:\n    pass\n"
    [size] = layout.function_sizes(text)
    assert size.nesting == 2


@pytest.mark.parametrize(("lines", "nesting", "faults"), [(50, 3, 0), (51, 3, 1), (50, 4, 1)])
def test_the_limits(lines: int, nesting: int, faults: int) -> None:
    """At the limit is allowed, one past it is not."""
    size = layout.FunctionSize("f", 1, lines, nesting)
    assert len(layout.size_faults([size])) == faults


def test_the_usual_length() -> None:
    """Shares are over all functions."""
    sizes = [layout.FunctionSize("f", 1, lines, 0) for lines in (2, 4, 24, 25)]
    assert layout.usual_share(sizes) == 0.75
    assert layout.median_lines(sizes) == 14


@pytest.mark.parametrize(
    ("source", "tests"),
    [
        ("libs/common/gatemesh_common/log.py", ("tests/unit/common/test_log.py",)),
        (
            "services/agent/gatemesh_agent/gates/l1.py",
            ("tests/unit/agent/gates/test_l1.py", "tests/unit/agent/test_l1.py"),
        ),
        ("services/agent/gatemesh_agent/__main__.py", ()),
        ("migrations/env.py", ()),
        ("tests/unit/test_layout.py", ()),
    ],
)
def test_where_a_test_belongs(source: str, tests: tuple[str, ...]) -> None:
    """A path is mirrored, or flat within its service."""
    assert layout.expected_tests(Path(source)) == tuple(map(Path, tests))
    assert layout.untested([Path(source)], set(map(Path, tests[-1:]))) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("see pypi.org/simple", ["pypi.org"]),
        ("cd /work/main", ["/work/m"]),
        ("read /root/.profile", []),
        ("https://example.org/work/x", []),
        ("tests/work/x and ~/work/x", []),
    ],
)
def test_named_places(text: str, named: list[str]) -> None:
    """Hosts and paths of one machine are found, other addresses are not."""
    assert layout.named_places(text) == named
