"""The repository keeps to its own layout and sizes."""

from pathlib import Path

import pytest

from gatemesh_mesh import layout

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = layout.python_files(REPOSITORY)
SIZES = {path: layout.function_sizes((REPOSITORY / path).read_text()) for path in FILES}
# The list of hosts itself, and its test.
NAMES_HOSTS = {
    Path("services/mesh/gatemesh_mesh/layout.py"),
    Path("tests/unit/mesh/test_layout.py"),
}


def test_every_module_has_its_unit_test() -> None:
    """A reader finds the test of a module without searching."""
    assert layout.untested(FILES, set(FILES)) == []


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_file_is_small(path: Path) -> None:
    """A reader can hold a file in the head."""
    assert len((REPOSITORY / path).read_text().splitlines()) <= layout.FILE_LINES
    assert layout.size_faults(SIZES[path]) == []


def test_most_functions_are_short() -> None:
    """The median and the usual length hold over the whole repository."""
    sizes = [size for sizes in SIZES.values() for size in sizes]
    assert layout.median_lines(sizes) <= layout.MEDIAN_LINES
    assert layout.usual_share(sizes) >= layout.USUAL_SHARE


def test_no_file_names_a_registry_or_a_path_of_one_machine() -> None:
    """The project works wherever its packages come from."""
    named = {
        str(path): places
        for path in layout.text_files(REPOSITORY)
        if path not in NAMES_HOSTS
        if (places := layout.named_places((REPOSITORY / path).read_text(errors="replace")))
    }
    assert named == {}
